package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

// What goes to standard error stands above the line, never behind it.
func TestProgressGivesWay(t *testing.T) {
	var out bytes.Buffer
	p := &progress{w: &out}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { _, _ = p.Write([]byte("a\n")) }, "a\n"},
		{func() { p.draw("1 line") }, "\r\x1b[K1 line"},
		{func() { p.draw("2 lines") }, "\r\x1b[K2 lines"},
		{func() { _, _ = p.Write([]byte("b\n")) }, "\r\x1b[Kb\n"},
		{func() { _, _ = p.Write([]byte("c\n")) }, "c\n"},
		{func() { p.draw("3 lines"); _, _ = p.Write(nil) }, "\r\x1b[K3 lines\r\x1b[K"},
	} {
		out.Reset()
		if step.do(); out.String() != step.want {
			t.Errorf("got %q, want %q", out.String(), step.want)
		}
	}
}

func TestProgressText(t *testing.T) {
	for _, tt := range []struct {
		lines      int64
		elapsed    time.Duration
		read, size int64
		want       string
	}{
		{0, time.Second, 0, 0, "0 lines, 0/s"},
		{500, 2 * time.Second, 4096, 0, "500 lines, 250/s"},
		{500, 2 * time.Second, 0, 8192, "500 lines, 250/s"},
		{500, 2 * time.Second, 2048, 8192, "500 lines, 250/s, 25%, 6s left"},
		{500, 2 * time.Second, 9000, 8192, "500 lines, 250/s, 100%, 0s left"}, // the file has grown
	} {
		if got := progressText(tt.lines, tt.elapsed, tt.read, tt.size); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	at := &position{r: strings.NewReader("12345")}
	if _, err := io.ReadAll(at); err != nil || at.bytes() != 5 {
		t.Errorf("%d bytes read, %v", at.bytes(), err)
	}
}
