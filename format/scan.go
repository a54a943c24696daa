package format

// Key is a key that `scan` found.
type Key struct {
	Key string
}

func (k Key) fields() object { return object{{"op", "scan"}, {"key", k.Key}} }

func (k Key) human(dst []byte, s *style) []byte { return s.row(dst, k) }

func (k Key) cells(s *style) []cell { return []cell{{text: Word(k.Key), paint: s.key}} }

func (k Key) raw(dst []byte) []byte { return append(AppendEscape(dst, k.Key), '\n') }
