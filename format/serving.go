package format

// Serving says that `serve` is ready.
type Serving struct {
	URL   string
	Paste []string // lines for another terminal
}

func (s Serving) fields() object {
	return object{{"op", "serve"}, {"url", s.URL}}
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
