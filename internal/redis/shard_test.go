package redis_test

import (
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// TestShardChannels: SSUBSCRIBE, SPUBLISH and SUNSUBSCRIBE reply as a redis-server without a
// cluster.
func TestShardChannels(t *testing.T) {
	t.Parallel()
	s, _ := start(t, emulator.Options{})
	var got [2][]string
	for i, a := range [][2]string{{"unix", redistest.StartServer(t)}, {"tcp", redistest.Address(s.RedisURL())}} {
		for _, hello := range []string{"2", "3"} {
			sub, pub := redistest.Dial(t, a[0], a[1]), redistest.Dial(t, a[0], a[1])
			sub.Do(t, "hello", hello)
			for _, step := range []struct {
				c       *redistest.Client
				command string
				more    int // number of further frames to sub
			}{
				{sub, "ssubscribe", 0}, {sub, "ssubscribe a b", 1}, {sub, "subscribe c", 0}, {sub, "psubscribe d*", 0}, {sub, "ping", 0}, {sub, "get x", 0},
				{pub, "spublish a 1", 1}, {pub, "publish a 1", 0}, {pub, "spublish c 1", 0}, {pub, "spublish none 1", 0}, {pub, "spublish", 0},
				{pub, "pubsub shardchannels", 0}, {pub, "pubsub shardchannels b*", 0}, {pub, "pubsub shardchannels x", 0}, {pub, "pubsub shardnumsub", 0},
				{pub, "pubsub shardnumsub a none", 0}, {pub, "pubsub channels", 0}, {pub, "pubsub numsub a c", 0}, {pub, "pubsub help", 0},
				{sub, "ssubscribe a", 0}, {sub, "unsubscribe c", 0}, {sub, "punsubscribe", 0}, {sub, "ping", 0}, {sub, "sunsubscribe a", 0},
				{sub, "sunsubscribe", 0}, {sub, "sunsubscribe", 0}, {sub, "sunsubscribe x", 0}, {sub, "get x", 0},
				{sub, "multi", 0}, {sub, "ssubscribe z", 0}, {sub, "spublish z 1", 0}, {sub, "exec", 0},
				{sub, "ssubscribe z", 0}, {sub, "reset", 0}, {pub, "pubsub shardchannels", 0},
				{pub, "command getkeys spublish a b", 0}, {pub, "command getkeys ssubscribe a b", 0},
			} {
				got[i] = append(got[i], step.command+": "+step.c.Do(t, strings.Fields(step.command)...))
				for range step.more {
					f, err := sub.Frame()
					if err != nil {
						t.Fatal(step.command, err)
					}
					got[i] = append(got[i], string(f))
				}
			}
		}
	}
	for i := range got[0] {
		if got[0][i] != got[1][i] && !strings.HasPrefix(got[0][i], "pubsub shardchannels: *2") { // in any order
			t.Errorf("redis-server %q\nemulator     %q", got[0][i], got[1][i])
		}
	}
}

// TestEffectsBeforeReplies: once a client has the reply to UNSUBSCRIBE, QUIT or CLIENT KILL, other clients
// see the effect.
func TestEffectsBeforeReplies(t *testing.T) {
	t.Parallel()
	s, other := start(t, emulator.Options{})
	for i := range 100 {
		c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
		c.Do(t, "HELLO", "3")
		for _, word := range []string{"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"} {
			c.Do(t, word, "a")
		}
		switch i % 3 {
		case 0:
			for _, word := range []string{"UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"} {
				c.Do(t, word)
			}
		case 1:
			c.Do(t, "QUIT")
		default:
			other.Expect(t, ":1\r\n", "CLIENT", "KILL", "TYPE", "pubsub")
		}
		other.Expect(t, ":0\r\n", "PUBLISH", "a", "x")
		other.Expect(t, ":0\r\n", "SPUBLISH", "a", "x")
		other.Expect(t, ":0\r\n", "PUBSUB", "NUMPAT")
		c.Conn.Close()
	}
}
