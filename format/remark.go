package format

// A Remark is a line that explains to a reader what comes next. The raw form has none.
type Remark struct {
	Text string
}

func (Remark) diagnostic() {}

func (r Remark) fields(o *objectWriter) {
	o.add("op", "say")
	o.add("text", valid(r.Text))
}

func (r Remark) human(dst []byte, s *style) []byte {
	return append(append(dst, s.key.Sprint(Escape(r.Text))...), '\n')
}

func (r Remark) raw(dst []byte) []byte { return dst }
