package format

// Gateway is the message of `gateway` that it is ready.
type Gateway struct {
	URL   string // for Redis clients
	Store string // URL of the broker; empty: none
}

func (g Gateway) fields() object {
	return object{{"op", "gateway"}, {"url", g.URL}, {"store", nonEmpty(g.Store)}}
}

func (g Gateway) human(dst []byte, _ *style) []byte {
	dst = append(appendText(append(dst, "ready: "...), g.URL), '\n')
	return append(appendText(append(dst, "  redis-cli -u "...), g.URL), '\n')
}

func (g Gateway) raw(dst []byte) []byte {
	return append(appendText(dst, g.URL), '\n')
}
