package terminal

import (
	"bytes"
	"testing"
)

// TestLiveLineGivesWay: text for standard error appears above the live line, never after it.
func TestLiveLineGivesWay(t *testing.T) {
	var out bytes.Buffer
	line := &Line{W: &out}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { _, _ = line.Write([]byte("a\n")) }, "a\n"},
		{func() { line.draw("1 line") }, "\r\x1b[K1 line"},
		{func() { line.draw("2 lines") }, "\r\x1b[K2 lines"},
		{func() { _, _ = line.Write([]byte("b\n")) }, "\r\x1b[Kb\n"},
		{func() { _, _ = line.Write([]byte("c\n")) }, "c\n"},
		{func() { line.draw("3 lines"); _, _ = line.Write(nil) }, "\r\x1b[K3 lines\r\x1b[K"},
	} {
		out.Reset()
		if step.do(); out.String() != step.want {
			t.Errorf("got %q, want %q", out.String(), step.want)
		}
	}
}
