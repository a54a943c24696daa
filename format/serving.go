package format

// Serving is the message of `serve` that it is ready.
type Serving struct {
	URL string

	// Files that a client needs; empty: none.
	CAFile, CertFile, KeyFile, SATFile string

	Paste []string // shell commands that set up another terminal
}

func (s Serving) fields() object {
	return object{
		{"op", "serve"}, {"url", s.URL},
		{"ca_file", nonEmpty(s.CAFile)}, {"cert_file", nonEmpty(s.CertFile)},
		{"key_file", nonEmpty(s.KeyFile)}, {"sat_file", nonEmpty(s.SATFile)},
	}
}

func (s Serving) human(dst []byte, _ *style) []byte {
	dst = append(appendText(append(dst, "ready: "...), s.URL), '\n')
	for _, line := range s.Paste {
		dst = append(appendText(append(dst, "  "...), line), '\n')
	}
	return dst
}

func (s Serving) raw(dst []byte) []byte {
	return append(appendText(dst, s.URL), '\n')
}
