package gateway

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
)

// pipelined sends several commands at once, each given as a line of words.
func (c *redisClient) pipelined(commands ...string) {
	c.t.Helper()
	if _, err := c.Conn.Write([]byte(strings.Join(commands, "\r\n") + "\r\n")); err != nil {
		c.t.Fatal(err)
	}
}

// TestIndependentKeys: a reply does not wait for later commands, and a command does not wait for earlier commands on
// other keys.
func TestIndependentKeys(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	f := start(t, store.Addr().String(), patience, "")
	c := f.connect(t)
	const delay = patience / 2
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Key() == "slow" && r.Verb() == "SET" {
			return emulator.Action{Delay: delay}
		}
		return emulator.Action{}
	})
	c.pipelined("SET a 1", "SET slow 1", "SET b 1", "GET slow", "STRLEN b", "PING")
	c.want("+OK")
	await.State(t, store, func(st emulator.State) bool { return st.Keys == 2 && st.Delayed == 1 })
	if got := store.Keys(); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("the store has %q", got)
	}
	store.FastForward(delay)
	for _, reply := range []string{"+OK", "+OK", "1", ":1", "+PONG"} {
		c.want(reply)
	}
}

// TestUnknownTogether: writes of a pipeline that get no reply wait for it concurrently.
func TestUnknownTogether(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	const timeout = 2 * time.Second
	f := start(t, store.Addr().String(), timeout, "")
	c := f.connect(t)
	store.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{Drop: true} })
	var commands []string
	for i := range 40 {
		commands = append(commands, fmt.Sprintf("SET k%d v", i))
	}
	began := time.Now()
	c.pipelined(commands...)
	for i := range commands {
		c.want(fmt.Sprintf(`-UNKNOWN SET "k%d" got no answer within 2s; it may have been applied`, i))
	}
	if took := time.Since(began); took >= time.Duration(len(commands))*timeout { // they waited one after another
		t.Errorf("the replies came after %v", took)
	}
}

// TestLargeValues: a pipeline of large values gets all replies, in the order of the commands.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	f := start(t, store.Addr().String(), patience, "")
	c := f.connect(t)
	value := strings.Repeat("x", 1<<20)
	var keys, commands []string
	for i := range 40 {
		keys = append(keys, "k"+strconv.Itoa(i))
		commands = append(commands, "GET k"+strconv.Itoa(i))
		c.do("+OK", "SET", keys[i], value+strconv.Itoa(i))
	}
	c.pipelined(append(commands, "MGET "+strings.Join(keys, " "))...)
	all := make([]string, len(keys))
	for i := range keys {
		all[i] = value + strconv.Itoa(i)
		if got, err := c.reply(); err != nil || got != all[i] {
			t.Fatalf("GET %s: %d bytes, %v", keys[i], len(got), err)
		}
	}
	if got, err := c.reply(); err != nil || got != "["+strings.Join(all, " ")+"]" {
		t.Errorf("MGET: %d bytes, %v", len(got), err)
	}
}
