package store

func (s *Store) del(c *call) Response {
	if text := c.arguments(2, 2); text != "" {
		return s.refuse(c, text)
	}
	r, text := s.writable(c)
	switch {
	case text != "":
		return s.refuse(c, text)
	case r == 0:
		return s.count(c, 0)
	default:
		return s.deleted(c, r, CauseDel)
	}
}

// writable makes the checks that DEL and VDEL share and returns where the key is, 0 if it is
// missing.
func (s *Store) writable(c *call) (ref, string) {
	if text := s.access(c, true); text != "" {
		return 0, text
	}
	if text := s.stamps(c, false, true); text != "" {
		return 0, text
	}
	r := s.index.find(c.key)
	return r, s.guard(c.fence, r)
}

func (s *Store) deleted(c *call, r ref, cause Cause) Response {
	version := s.remove(r, cause, c.ClientID, c.timestamp)
	if s.opts.Variants.DelNoVersion {
		return s.count(c, 1)
	}
	return s.count(c, 1).with(version)
}
