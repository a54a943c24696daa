package format

// Serving is the message that `serve` is ready.
type Serving struct {
	URL string `json:"url"`

	// The files that a client needs; empty: none.
	CAFile   string `json:"ca_file,omitzero"`
	CertFile string `json:"cert_file,omitzero"`
	KeyFile  string `json:"key_file,omitzero"`
	SATFile  string `json:"sat_file,omitzero"`

	Paste []string // shell commands that set up another terminal
}

func (s Serving) fields(o *objectWriter) { o.result("serve", s) }

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
