package emulator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/redis/redistest"
)

// TestManyExpiries: when many keys expire in one moment, other clients need not wait until all of them
// are removed.
func TestManyExpiries(t *testing.T) {
	const keys = 50_000
	s, c := startWithRedis(t, emulator.Options{})
	at := fmt.Sprint(s.Now().Add(time.Second).UnixMilli())
	var all []byte
	for i := range keys {
		all = append(all, redistest.Request("SET", fmt.Sprint(i), "v", "PXAT", at)...)
	}
	go func() { _, _ = c.Conn.Write(all) }() // the replies would show an error
	for range keys {
		if reply, err := c.Frame(); err != nil || string(reply) != "+OK\r\n" {
			t.Fatalf("%q, %v", reply, err)
		}
	}
	before, seen := s.State().Keys, 0
	if before < keys {
		t.Skip("the machine is so busy that the keys expire before all of them are set")
	}
	for n := before; n > 0; n = s.State().Keys {
		if n < before {
			before = n
			seen++
		}
	}
	if seen < 5 {
		t.Errorf("the keys were removed in %d steps", seen+1)
	}
}
