package format

// Gateway is the message that `gateway` is ready.
type Gateway struct {
	URL   string `json:"url"`            // for Redis clients
	Store string `json:"store,omitzero"` // URL of the broker; empty: none
}

func (g Gateway) fields(o *objectWriter) { o.result("gateway", g) }

func (g Gateway) human(dst []byte, _ *style) []byte {
	dst = append(appendText(append(dst, "ready: "...), g.URL), '\n')
	return append(appendText(append(dst, "  redis-cli -u "...), g.URL), '\n')
}

func (g Gateway) raw(dst []byte) []byte {
	return append(appendText(dst, g.URL), '\n')
}
