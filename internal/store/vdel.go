package store

import "bytes"

func (s *Store) vdel(c *call) Response {
	r, text := s.checkDelete(c, 3)
	switch {
	case text != "":
		return s.refuse(c, text)
	case r == 0:
		return s.count(c, 0, causeMissing)
	}
	e := s.index.entry(r)
	switch {
	case bytes.Equal(e.Value(), c.words[2]):
		return s.deleted(c, r, CauseVDel)
	case s.opts.Variants.MismatchVersion:
		return s.count(c, -1, causeOtherValue).with(e.Version())
	default:
		return s.count(c, -1, causeOtherValue)
	}
}
