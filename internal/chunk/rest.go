package chunk

// A Rest is the second part of a message's payload; it begins with a large value. Large is never
// modified, so it can be sent or kept without a copy. A nil Rest is empty.
type Rest struct {
	Large []byte
	Tail  []byte // follows Large
}

// Len returns the length in bytes.
func (r *Rest) Len() int {
	if r == nil {
		return 0
	}
	return len(r.Large) + len(r.Tail)
}

// Join returns the whole payload: begin, followed by the Rest. If the Rest is empty, it returns begin
// itself.
func (r *Rest) Join(begin []byte) []byte {
	if r.Len() == 0 {
		return begin
	}
	return Join(begin, r.Large, r.Tail)
}
