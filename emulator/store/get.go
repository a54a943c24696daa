package store

func (s *Store) get(c *call) Response {
	if text := c.arguments(2, 2); text != "" {
		return s.refuse(c, text)
	}
	if text := s.access(c, false); text != "" {
		return s.refuse(c, text)
	}
	if text := s.stamps(c, false, false); text != "" {
		return s.refuse(c, text)
	}
	r := s.index.find(c.key)
	if r == 0 {
		return s.null(c)
	}
	e := s.index.entry(r)
	return s.blob(c, e.Value()).with(e.Version())
}
