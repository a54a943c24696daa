package screentest

import "testing"

// TestLateOutput: what a program wrote for the size before a change of the size is no fault, as it cannot
// know. Real terminals then leave the cursor at the edge.
func TestLateOutput(t *testing.T) {
	s := New(80, 24)
	s.Resize(40, 10)
	_, _ = s.Write([]byte("\x1b[24;80Hx"))
	if column, row := s.Cursor(); s.Fault() != nil || column != 39 || row != 9 {
		t.Errorf("the cursor is at %d,%d: %v", column, row, s.Fault())
	}
	s.Resize(40, 10)
	_, _ = s.Write([]byte("\x1b[24;80Hx"))
	if s.Fault() == nil {
		t.Error("a position off the screen is no fault")
	}
}
