package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/scripts/harness"
)

// patience is how long an attacker waits for a reply.
const patience = 30 * time.Second

// expensive returns a pattern of about n bytes. For a key that consists of the letter a, a matcher
// takes more than quadratic time if it backtracks or reads a class repeatedly.
func expensive(n int) []byte {
	p := append([]byte("*"), bytes.Repeat([]byte("a"), n/2)...)
	return fmt.Appendf(p, "[%s]", bytes.Repeat([]byte("b"), n/2))
}

// stalls returns the attacks that make other clients wait.
func stalls() []attack {
	letters := func(n int) []byte { return bytes.Repeat([]byte("a"), n) }
	return []attack{
		{name: "SCAN with a pattern of 1 KB on a key of 60 KB", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToStore(t, connectOptions{id: "attacker"}))
			harness.Check(c.request([]byte("SET"), letters(60_000), []byte("1")))
			harness.Must(c.reply(patience))
			harness.Check(c.request([]byte("SCAN"), expensive(1000)))
			return answered(c.reply(patience))
		}},
		{name: "KEYS with a pattern of 1 KB on a key of 65 KB", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToRedis(t))
			harness.Must(c.do(patience, []byte("SET"), letters(65_000), []byte("1")))
			return answered(c.do(patience, []byte("KEYS"), expensive(1000)))
		}},
		{name: "200 PSUBSCRIBE patterns of 1 KB, one SET of a key of 60 KB", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToRedis(t))
			for i := range t.scale(200) {
				wanted(c.do(patience, []byte("PSUBSCRIBE"), append(expensive(1000), fmt.Sprint(i)...)))
			}
			w := harness.Must(connectToRedis(t))
			return answered(w.do(patience, []byte("SET"), letters(60_000), []byte("1")))
		}},
		{name: "1,000 such SCANs in one write, four times", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToStore(t, connectOptions{id: "attacker"}))
			harness.Check(c.request([]byte("SET"), letters(60_000), []byte("1")))
			harness.Must(c.reply(patience))
			n := t.scale(1000)
			for range 4 {
				wanted(c.Write(bytes.Repeat(c.requestPacket([]byte("SCAN"), expensive(1000)), n)))
				for range n {
					wanted(c.reply(patience))
				}
			}
			return fmt.Sprintf("%d replies", 4*n), nil
		}},
		{name: "100 SUBSCRIBEs that match 100,000 retained messages", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectTo(t, connectOptions{id: "attacker"}))
			n := t.scale(100_000)
			var all []byte
			for i := range n {
				p := packets.Publish{Topic: fmt.Sprintf("retained/%d", i), Retain: true, Payload: []byte("hello"), Properties: &packets.Properties{}}
				all = append(all, encoded(&p)...)
			}
			harness.Must(c.Write(all))
			got, err := inParallel(context.Background(), 100, func(i int) error {
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("reader", i)})
				if err != nil {
					return err
				}
				defer c.Close()
				if err := c.subscribe("retained/+"); err != nil {
					return err
				}
				for range n {
					if _, err := c.reply(patience); err != nil {
						return err
					}
				}
				return nil
			})
			want(err)
			return fmt.Sprintf("%d times %d messages", got, n), nil
		}},
		{name: "500 APPENDs to a value of 1 MB in one write", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToRedis(t))
			harness.Must(c.do(patience, []byte("SET"), []byte("k"), letters(1_000_000)))
			t.stored.Add(1_000_000)
			n := t.scale(500)
			wanted(c.Write(bytes.Repeat([]byte("*3\r\n$6\r\nAPPEND\r\n$1\r\nk\r\n$1\r\nx\r\n"), n)))
			for range n {
				wanted(c.in.ReadString('\n'))
			}
			return fmt.Sprintf("%d replies", n), nil
		}},
		{name: "100,000 sessions of one filter, one message", flags: []string{"--limit", "sessions=200000"}, run: func(ctx context.Context, t *target) (string, error) {
			kept := harness.Must(leaveSessions(ctx, t, t.scale(100_000), func() uint32 { return 3600 }, "news/+"))
			c := harness.Must(connectTo(t, connectOptions{id: "attacker"}))
			harness.Must(c.Write(publishPacket("news/1", 1, []byte("hello"))))
			_ = c.SetReadDeadline(time.Now().Add(patience))
			wanted(packets.ReadPacket(c.in))
			return fmt.Sprintf("%d sessions", kept), nil
		}},
		{name: "90,000 sessions that expire in one moment", flags: []string{"--limit", "sessions=200000"}, run: func(ctx context.Context, t *target) (string, error) {
			n := t.scale(90_000)
			moment := time.Now().Add(time.Duration(max(5, n/1500)) * time.Second)
			kept := harness.Must(leaveSessions(ctx, t, n, func() uint32 { return uint32(max(1, time.Until(moment).Seconds())) }, "news/+"))
			select {
			case <-time.After(time.Until(moment) + 3*time.Second):
			case <-ctx.Done():
			}
			return fmt.Sprintf("%d sessions", kept), ctx.Err()
		}},
		{name: "200,000 shared subscriptions that leave at once", run: func(_ context.Context, t *target) (string, error) {
			const each = 10_000
			var clients []*client
			for i := range t.scale(200_000) / each {
				c := harness.Must(connectTo(t, connectOptions{id: fmt.Sprint("group", i)}))
				clients = append(clients, c)
				for first := 0; first < each; first += 500 {
					filters := make([]string, 500)
					for j := range filters {
						filters[j] = fmt.Sprintf("$share/g%d-%d/news/+/%d", i, first+j, first+j)
					}
					want(c.subscribe(filters...))
				}
			}
			for _, c := range clients {
				c.Close()
			}
			// The server answers a later client only after it has removed these subscriptions.
			c := harness.Must(connectTo(t, connectOptions{id: "attacker"}))
			return fmt.Sprintf("%d subscriptions", each*len(clients)), c.subscribe("done")
		}},
	}
}

// leaveSessions leaves behind n sessions without connections, each with a subscription to filter.
// It calls expiry for the expiry of each session, in seconds, and returns how many it made.
func leaveSessions(ctx context.Context, t *target, n int, expiry func() uint32, filter string) (kept int, err error) {
	return inParallel(ctx, n, func(i int) error {
		conn, err := t.dial(t.mqtt)
		if err != nil {
			return err
		}
		defer conn.Close()
		id := fmt.Sprint("session", i)
		all := append(connectPacket(connectOptions{id: id, expiry: expiry()}), subscribePacket(&packets.Properties{}, filter)...)
		if _, err := conn.Write(append(all, disconnectPacket...)); err != nil {
			return err
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		got, err := readAll(conn)
		if err == nil && len(got) < 10 {
			err = fmt.Errorf("CONNACK: got %x", got)
		}
		return err
	})
}

// noAnswer is an error that explains why a reply is missing.
type noAnswer struct{ error }

// want ends the attack with a missing reply as its result if err is not nil.
func want(err error) {
	if err != nil {
		harness.Check(noAnswer{err})
	}
}

// wanted is want for a call whose other result is not needed.
func wanted[T any](_ T, err error) { want(err) }

// answered returns the result of an attack that waits for a reply. A missing reply is also a result, not an
// error.
func answered(answer string, err error) (string, error) {
	if err != nil {
		return "no answer: " + plain(err), nil
	}
	return fmt.Sprintf("%.40q", answer), nil
}
