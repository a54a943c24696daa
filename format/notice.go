package format

import "time"

// Notice is for standard error: what sscli is doing or waiting for. Nothing is wrong.
type Notice struct {
	Message string
	Line    int       // of a batch, from 1
	Time    time.Time // when it happened; zero: not shown
}

func (Notice) diagnostic() {}

func (n Notice) fields(o *objectWriter) {
	o.add("op", "notice")
	o.add("line", when(n.Line > 0, n.Line))
	o.add("message", valid(n.Message))
	o.add("time", when(!n.Time.IsZero(), n.Time))
}

func (n Notice) human(dst []byte, _ *style) []byte {
	dst = appendMoment(append(dst, "sscli: "...), n.Time)
	return append(appendText(appendLine(dst, n.Line), n.Message), '\n')
}
