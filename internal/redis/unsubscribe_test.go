package redis_test

import (
	"fmt"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// TestManyUnsubscribed: a client that does not read the confirmations of UNSUBSCRIBE keeps the rest of its
// subscriptions, instead of filling the memory with confirmations.
func TestManyUnsubscribed(t *testing.T) {
	const channels = 30_000
	_, other := start(t, emulator.Options{})
	c := redistest.Dial(t, "tcp", other.Conn.RemoteAddr().String())
	name := func(i int) string { return fmt.Sprintf("%01000d", i) }
	for i := 0; i < channels; i += 1000 {
		request := []string{"SUBSCRIBE"}
		for j := range 1000 {
			request = append(request, name(i+j))
		}
		c.Do(t, request...)
		for range 999 {
			if _, err := c.Frame(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.Send("UNSUBSCRIBE"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reader.Peek(1); err != nil { // the reply has begun
		t.Fatal(err)
	}
	last := name(channels - 1)
	subscribers := func(n int) string { return fmt.Sprintf("*2\r\n$1000\r\n%s\r\n:%d\r\n", last, n) }
	other.Expect(t, subscribers(1), "PUBSUB", "NUMSUB", last)
	for i := range channels {
		want := fmt.Sprintf("*3\r\n$11\r\nunsubscribe\r\n$1000\r\n%s\r\n:%d\r\n", name(i), channels-1-i)
		if got, err := c.Frame(); err != nil || string(got) != want {
			t.Fatalf("got %.60q, %v, want %.60q", got, err, want)
		}
	}
	other.Expect(t, subscribers(0), "PUBSUB", "NUMSUB", last)
	c.Expect(t, "+PONG\r\n", "PING")
}

// TestPatternReplaced: a pattern is matched once if a client subscribes to it while another client ends many
// subscriptions, this one too.
func TestPatternReplaced(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{})
	other := redistest.Dial(t, "tcp", c.Conn.RemoteAddr().String())
	var patterns []string
	for i := range 300 {
		patterns = append(patterns, fmt.Sprintf("p%d*", i))
	}
	for range 20 {
		for _, leave := range []string{"PUNSUBSCRIBE", "RESET"} {
			for _, p := range patterns {
				other.Do(t, "PSUBSCRIBE", p)
			}
			if err := other.Send(leave); err != nil {
				t.Fatal(err)
			}
			c.Do(t, "PSUBSCRIBE", patterns[0])
			frames := 1
			if leave == "PUNSUBSCRIBE" {
				frames = len(patterns)
			}
			for range frames {
				if _, err := other.Frame(); err != nil {
					t.Fatal(err)
				}
			}
			other.Expect(t, ":1\r\n", "PUBLISH", "p0", "x")
			if _, err := c.Frame(); err != nil {
				t.Fatal(err)
			}
			c.Do(t, "PUNSUBSCRIBE")
		}
	}
}
