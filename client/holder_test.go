package client

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestGeneratedHolder: a generated holder is recognized and tells when its wait began, if it knows, and no other value does.
func TestGeneratedHolder(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	for _, name := range []string{"c", "ann@host:17", "", "a:b", "é\x00"} {
		for _, began := range []time.Time{now, time.UnixMilli(0), time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)} {
			holder := newHolder(name, began)
			if got, ok := waitBegan(holder); !ok || !got.Equal(began) || !IsGeneratedHolder(holder) || !bytes.HasPrefix(holder, []byte(name+":")) {
				t.Errorf("%q: %v, %t; want %v", holder, got, ok, began)
			}
		}
		if got, ok := waitBegan(newHolder(name, time.UnixMilli(-1))); !ok || !got.Equal(time.UnixMilli(0)) {
			t.Errorf("by a clock before 1970: %v, %t", got, ok)
		}
		holder := newHolder(name, time.Time{})
		if got, ok := waitBegan(holder); !ok || got.Year() < 2500 {
			t.Errorf("%q, which does not tell: %v, %t", holder, got, ok)
		}
		if bytes.Equal(holder, newHolder(name, time.Time{})) || bytes.Equal(newHolder(name, now), newHolder(name, now)) {
			t.Errorf("%q: the same holder twice", name)
		}
	}
	for _, value := range noHolders {
		if IsGeneratedHolder([]byte(value)) {
			t.Errorf("%q is taken for a generated holder", value)
		}
	}
}

// noHolders are values that no client generates. Some are base32 of fewer bytes for a lenient parser.
var noHolders = []string{"", ":", "abcdefghijklmnopqrst", "c:abcdefghijklmnopqrs", "c:abcdefghijklmnopqrs1", "c:Abcdefghijklmnopqrst", "c:abcdefghijklmnopqrst\n",
	"c-abcdefghijklmnopqrst", `{"a":1}`, "c:abcdefghijklmn======", "c:abcdefgh" + strings.Repeat("\n", 12), "c:" + strings.Repeat("ſ", 10), "c:abcdefghijklmnopqrs="}

// FuzzWaitBegan: whatever a holder is, it is read as it would be written, or not at all.
func FuzzWaitBegan(f *testing.F) {
	f.Add(newHolder("c", time.Now()))
	f.Add(newHolder("", time.Time{}))
	for _, value := range noHolders {
		f.Add([]byte(value))
	}
	f.Fuzz(func(t *testing.T, holder []byte) {
		began, ok := waitBegan(holder)
		if !ok {
			return
		}
		name, stamp := holder[:len(holder)-stampSize-1], holder[len(holder)-stampSize:]
		if again := newHolder(string(name), began); !bytes.Equal(again[len(name)+1:][:stampTime], stamp[:stampTime]) {
			t.Errorf("%q began at %v, which is written as %q", holder, began, again)
		}
	})
}
