package store

func (s *Store) del(c *call) Response {
	r, text := s.checkDelete(c, 2)
	switch {
	case text != "":
		return s.refuse(c, text)
	case r == 0:
		return s.count(c, 0, causeMissing)
	default:
		return s.deleted(c, r, CauseDel)
	}
}

// checkDelete performs the checks that DEL and VDEL share; words is the required number of words. It
// returns the key's record (0 if the key is missing) and the text of the refusal, or "".
func (s *Store) checkDelete(c *call, words int) (r ref, refusal string) {
	if text := c.checkWords(words, words); text != "" {
		return 0, text
	}
	if text := s.check(c, true, false); text != "" {
		return 0, text
	}
	r = s.find(c.key)
	return r, s.checkFence(c.fence, r)
}

func (s *Store) deleted(c *call, r ref, cause Cause) Response {
	version := s.remove(r, cause, c.ClientID, c.timestamp)
	if s.opts.Variants.DelNoVersion {
		return s.count(c, 1, "")
	}
	return s.count(c, 1, "").with(version)
}
