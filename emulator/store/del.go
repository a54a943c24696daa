package store

func (s *Store) del(c *call) Response {
	if text := c.arguments(2, 2); text != "" {
		return s.refuse(c, text)
	}
	e, text := s.writable(c)
	switch {
	case text != "":
		return s.refuse(c, text)
	case e == nil:
		return s.count(c, 0)
	default:
		return s.deleted(c, e, CauseDel)
	}
}

// writable makes the checks that DEL and VDEL share and returns the key's entry,
// nil if there is none.
func (s *Store) writable(c *call) (*Entry, string) {
	if text := s.access(c, true); text != "" {
		return nil, text
	}
	if text := s.stamps(c, false, true); text != "" {
		return nil, text
	}
	e := s.index.find(c.key)
	return e, s.guard(c.fence, e)
}

func (s *Store) deleted(c *call, e *Entry, cause Cause) Response {
	version := s.remove(e, cause, c.ClientID, c.timestamp)
	if s.opts.Variants.DelNoVersion {
		return s.count(c, 1)
	}
	return s.count(c, 1).with(version)
}
