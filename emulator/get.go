package emulator

func (e *Engine) get(c *call) Response {
	if text := c.arguments(2, 2); text != "" {
		return e.refuse(text)
	}
	if text := e.access(c, false); text != "" {
		return e.refuse(text)
	}
	if text := e.stamps(c, false, false); text != "" {
		return e.refuse(text)
	}
	en := e.entries[c.key]
	if en == nil {
		return e.null()
	}
	return e.blob(en.value).with(en.version)
}
