package redis_test

import (
	"fmt"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// TestLongMutedCommand: a command whose reply is skipped may let other clients proceed while it runs. The
// replies before and after it arrive complete.
func TestLongMutedCommand(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{})
	mset := []string{"MSET"}
	for i := range 60_000 {
		mset = append(mset, fmt.Sprint(i), "v")
		if len(mset) > 10_000 {
			c.Expect(t, "+OK\r\n", mset...)
			mset = mset[:1]
		}
	}
	before := make([]byte, 10_000)
	c.Expect(t, "+OK\r\n", "SET", "k", string(before))
	all := append(redistest.Request("GET", "k"), redistest.Request("CLIENT", "REPLY", "SKIP")...)
	all = append(append(all, redistest.Request("FLUSHALL")...), redistest.Request("PING")...)
	go func() { _, _ = c.Conn.Write(all) }() // an error would show in the replies
	for _, want := range []string{"$10000\r\n" + string(before) + "\r\n", "+PONG\r\n"} {
		if got, err := c.Frame(); err != nil || string(got) != want {
			t.Fatalf("got %.60q, %v, want %.60q", got, err, want)
		}
	}
}
