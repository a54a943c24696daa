package store

import "bytes"

func (s *Store) vdel(c *call) Response {
	if text := c.arguments(3, 3); text != "" {
		return s.refuse(c, text)
	}
	e, text := s.writable(c)
	switch {
	case text != "":
		return s.refuse(c, text)
	case e == nil:
		return s.count(c, 0)
	case bytes.Equal(e.Value(), c.words[2]):
		return s.deleted(c, e, CauseVDel)
	case s.opts.Variants.MismatchVersion:
		return s.count(c, -1).with(e.Version())
	default:
		return s.count(c, -1)
	}
}
