package process

// InitMain does nothing on Windows, where the first process of a container is like all others.
func InitMain() (code int, ok bool) { return 0, false }
