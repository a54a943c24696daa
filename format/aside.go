package format

// Aside is a remark to the user, for standard error.
type Aside struct {
	Text string
}

func (Aside) diagnostic() {}

func (a Aside) fields(o *objectWriter) {
	o.add("op", "aside")
	o.add("text", valid(a.Text))
}

func (a Aside) human(dst []byte, s *style) []byte {
	return append(append(dst, s.faint.Sprint("("+string(appendText(nil, a.Text))+")")...), '\n')
}

func (a Aside) raw(dst []byte) []byte { return append(appendText(dst, a.Text), '\n') }
