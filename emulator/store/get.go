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
	e := s.index.find(c.key)
	if e == nil {
		return s.null(c)
	}
	return s.blob(c, e.Value()).with(e.Version())
}
