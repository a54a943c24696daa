package emulator

import "bytes"

func (e *Engine) vdel(c *call) Response {
	if text := c.arguments(3, 3); text != "" {
		return e.refuse(text)
	}
	en, text := e.writable(c)
	switch {
	case text != "":
		return e.refuse(text)
	case en == nil:
		return e.count(0)
	case bytes.Equal(en.value, c.words[2]):
		return e.deleted(c, en, CauseVDel)
	case e.opts.Variants.MismatchVersion:
		return e.count(-1).with(en.version)
	default:
		return e.count(-1)
	}
}
