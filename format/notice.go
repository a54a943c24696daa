package format

import "time"

// Notice is for standard error: what sscli is doing or waiting for. Nothing is wrong.
type Notice struct {
	Message string
	Line    int       // of a batch, from 1
	Time    time.Time // when it happened; zero: not shown
}

func (n Notice) fields() object {
	return object{
		{"op", "notice"},
		{"line", when(n.Line > 0, n.Line)},
		{"message", valid(n.Message)},
		{"time", when(!n.Time.IsZero(), n.Time)},
	}
}

func (n Notice) human(dst []byte, _ *style) []byte { return n.raw(dst) }

func (n Notice) raw(dst []byte) []byte {
	dst = appendMoment(append(dst, "sscli: "...), n.Time)
	return append(appendText(appendLine(dst, n.Line), n.Message), '\n')
}
