package format

// Serving says that `serve` is ready.
type Serving struct {
	URL string

	// What a client needs besides; empty if it needs none.
	CAFile, CertFile, KeyFile, SATFile string

	Paste []string // lines for another terminal
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
