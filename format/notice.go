package format

// Notice is for standard error: what sscli is doing or waiting for. Nothing is wrong.
type Notice struct {
	Message string
	Line    int // of a batch, from 1
}

func (n Notice) fields() object {
	return object{{"op", "notice"}, {"line", when(n.Line > 0, n.Line)}, {"message", valid(n.Message)}}
}

func (n Notice) human(dst []byte, _ *style) []byte { return n.raw(dst) }

func (n Notice) raw(dst []byte) []byte {
	return append(appendText(appendLine(append(dst, "sscli: "...), n.Line), n.Message), '\n')
}
