package emulator

func (e *Engine) del(c *call) Response {
	if text := c.arguments(2, 2); text != "" {
		return e.refuse(text)
	}
	en, text := e.writable(c)
	switch {
	case text != "":
		return e.refuse(text)
	case en == nil:
		return e.count(0)
	default:
		return e.deleted(c, en, CauseDel)
	}
}

// writable makes the checks that DEL and VDEL share and returns the key's entry,
// nil if there is none.
func (e *Engine) writable(c *call) (*entry, string) {
	if text := e.access(c, true); text != "" {
		return nil, text
	}
	if text := e.stamps(c, false, true); text != "" {
		return nil, text
	}
	en := e.entries[c.key]
	return en, e.guard(c, en)
}

func (e *Engine) deleted(c *call, en *entry, cause Cause) Response {
	version := e.drop(en, cause, c.ClientID, c.timestamp)
	if e.opts.Variants.DelNoVersion {
		return e.count(1)
	}
	return e.count(1).with(version)
}
