package store

func (s *Store) get(c *call) Response {
	if text := c.checkWords(2, 2); text != "" {
		return s.refuse(c, text)
	}
	if text := s.check(c, false, false); text != "" {
		return s.refuse(c, text)
	}
	r := s.find(c.key)
	if r == 0 {
		return s.null(c)
	}
	e := s.index.entry(r)
	return s.blob(c, e.Value()).with(e.Version())
}
