package store

import "bytes"

func (s *Store) vdel(c *call) Response {
	if text := c.checkWords(3, 3); text != "" {
		return s.refuse(c, text)
	}
	r, text := s.checkDelete(c)
	if text != "" {
		return s.refuse(c, text)
	}
	if r == 0 {
		return s.count(c, 0)
	}
	e := s.index.entry(r)
	switch {
	case bytes.Equal(e.Value(), c.words[2]):
		return s.deleted(c, r, CauseVDel)
	case s.opts.Variants.MismatchVersion:
		return s.count(c, -1).with(e.Version())
	default:
		return s.count(c, -1)
	}
}
