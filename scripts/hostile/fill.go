package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/scripts/harness"
)

// fills returns the attacks on the server's memory.
func fills() []attack {
	return []attack{
		{name: "4,000 idle clients, each after a message of 64 KB, with a packet of 256 KB that is half sent", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			half := append([]byte{packets.PUBLISH << 4}, binary.AppendUvarint(nil, 256<<10)...)
			half = append(half, make([]byte, 128<<10)...)
			alive, _ := inParallel(ctx, t.scale(4000), func(i int) error {
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("idle", i)})
				if err != nil {
					return err
				}
				if _, err = c.Write(publishPacket("news", 0, make([]byte, 64<<10))); err != nil {
					return err
				}
				_, err = c.Write(half)
				return err
			})
			return fmt.Sprintf("%d clients", alive), pause(ctx, 2*time.Second)
		}},
		{name: "12,000 KEYNOTIFYs of keys of 30 KB", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			c := harness.Must(connectToStore(t, connectOptions{id: "attacker"}))
			taken := 0
			for i := range t.scale(12_000) {
				key := append(bytes.Repeat([]byte("k"), 30_000), fmt.Sprint(i)...)
				if err := c.request([]byte("KEYNOTIFY"), key); err != nil {
					return fmt.Sprintf("%d registrations, then %s", taken, plain(err)), nil
				}
				answer, err := c.reply(patience)
				if err != nil {
					return fmt.Sprintf("%d registrations, then %s", taken, plain(err)), nil
				}
				if answer == "+OK" {
					taken++
				}
			}
			return fmt.Sprintf("%d registrations", taken), nil
		}},
		{name: "2,000 clients that never read 100 messages of 64 KB", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			if _, err := inParallel(ctx, t.scale(2000), func(i int) error {
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("deaf", i)})
				if err != nil {
					return err
				}
				return c.subscribe("news")
			}); err != nil {
				return "", err
			}
			return publishMany(t, "news", 100, 64<<10)
		}},
		{name: "5,000 clients with user names of 60 KB", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			name := strings.Repeat("u", 60_000)
			n, _ := inParallel(ctx, t.scale(5000), func(i int) error {
				_, err := connectTo(t, connectOptions{id: fmt.Sprint("named", i), user: name})
				return err
			})
			return fmt.Sprintf("%d such clients", n), pause(ctx, time.Second)
		}},
		{name: "2,000 overlapping filters with identifiers, 2,000 messages of 1 KB, never read", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			c := harness.Must(connectTo(t, connectOptions{id: "overlap"}))
			const levels = 11 // so that 2^11 filters match one topic
			topic := "l"
			for range levels - 1 {
				topic += "/l"
			}
			for i := range t.scale(2000) {
				filter := []byte(topic)
				for bit := range levels {
					if i>>bit&1 == 1 {
						filter[2*bit] = '+'
					}
				}
				id := i + 1
				harness.Must(c.Write(subscribePacket(&packets.Properties{SubscriptionIdentifier: &id}, string(filter))))
				harness.Must(packets.ReadPacket(c.in))
			}
			return publishMany(t, topic, 2000, 1<<10)
		}},
		{name: "6,000 wills of 16 KB to 2,000 clients that do not read", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			if _, err := inParallel(ctx, t.scale(2000), func(i int) error {
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("heir", i)})
				if err != nil {
					return err
				}
				return c.subscribe("will")
			}); err != nil {
				return "", err
			}
			wills, _ := inParallel(ctx, t.scale(6000), func(i int) error {
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("will", i), will: make([]byte, 16<<10)})
				if err == nil {
					err = c.Close()
				}
				return err
			})
			return fmt.Sprintf("%d wills", wills), pause(ctx, 2*time.Second)
		}},
		{name: "SETs of 1 MB, with --limit store=32MiB", memory: true, flags: []string{"--limit", "store=33554432"}, run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToStore(t, connectOptions{id: "attacker"}))
			for i := range 100 {
				want(c.request([]byte("SET"), fmt.Append(nil, i), make([]byte, 1_000_000)))
				answer, err := c.reply(patience)
				if err != nil || answer != "+OK" {
					return fmt.Sprintf("%d values, then %s", i, answer), err
				}
				t.stored.Add(1_000_000)
			}
			return "100 values", nil
		}},
		{name: "MGET of a key of 10 MiB, 80 times", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			c := harness.Must(connectToRedis(t))
			if answer, err := c.do(patience, []byte("SET"), []byte("k"), make([]byte, 10*mib)); err != nil || answer != "+OK" {
				return answered(answer, err)
			}
			t.stored.Add(10 * mib)
			words := [][]byte{[]byte("MGET")}
			for range 80 {
				words = append(words, []byte("k"))
			}
			return answered(c.do(patience, words...))
		}},
		{name: "PUBLISH of 4 MiB to 150 patterns of the same client", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			return publishToItself(ctx, t, "%s")
		}},
		{name: "PUBLISH of 4 MiB to 150 patterns of the same client, in a transaction", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			return publishToItself(ctx, t, "MULTI\r\n%sEXEC\r\n")
		}},
		{name: "half a SET of 512 MiB", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			c := harness.Must(connectToRedis(t))
			harness.Must(c.Write([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n")))
			sent := 0
			for part := make([]byte, mib); sent < t.scale(256); sent++ {
				_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second))
				if _, err := c.Write(part); err != nil {
					return fmt.Sprintf("%d MiB taken, then %s", sent, plain(err)), nil
				}
			}
			return fmt.Sprintf("%d MiB taken", sent), pause(ctx, time.Second)
		}},
		{name: "50 pipelines of 600 GETs of 1 MB, closed unread", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			c := harness.Must(connectToRedis(t))
			if answer, err := c.do(patience, []byte("SET"), []byte("k"), make([]byte, 1_000_000)); err != nil || answer != "+OK" {
				return answered(answer, err)
			}
			t.stored.Add(1_000_000)
			n, err := inParallel(ctx, 50, func(int) error {
				r, err := connectToRedis(t)
				if err != nil {
					return err
				}
				defer r.Close()
				_, err = r.Write(bytes.Repeat([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), 600))
				return err
			})
			harness.Check(err)
			return fmt.Sprintf("%d pipelines", n), pause(ctx, 3*time.Second)
		}},
	}
}

// publishMany publishes n messages of size bytes with QoS 1, one at a time. It stops when the
// server refuses one.
func publishMany(t *target, topic string, n, size int) (string, error) {
	c := harness.Must(connectTo(t, connectOptions{id: "publisher"}))
	packet := publishPacket(topic, 1, make([]byte, size))
	for i := range n {
		if _, err := c.Write(packet); err != nil {
			return fmt.Sprintf("%d messages, then %s", i, plain(err)), nil
		}
		_ = c.SetReadDeadline(time.Now().Add(patience))
		p, err := packets.ReadPacket(c.in)
		if err != nil {
			return fmt.Sprintf("%d messages, then %s", i, plain(err)), nil
		}
		if ack, ok := p.Content.(*packets.Puback); ok && ack.ReasonCode >= 0x80 {
			return fmt.Sprintf("%d messages, then PUBACK 0x%02x", i, ack.ReasonCode), nil
		}
	}
	return fmt.Sprintf("%d messages", n), nil
}

// pause keeps an attack going for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// plain returns the text of an error without addresses, which differ from run to run.
func plain(err error) string {
	if e, ok := err.(*net.OpError); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// publishToItself sends a PUBLISH of 4 MiB, as commands has it, of a client whose 150 patterns match.
func publishToItself(ctx context.Context, t *target, commands string) (string, error) {
	c := harness.Must(connectToRedis(t))
	harness.Check(c.expect("%7", "HELLO", "3"))
	words := [][]byte{[]byte("PSUBSCRIBE")}
	for i := range 150 {
		words = append(words, bytes.Repeat([]byte("*"), i+1))
	}
	if answer, err := c.do(patience, words...); err != nil {
		return answered(answer, err)
	}
	harness.Check(c.SetDeadline(time.Now().Add(patience)))
	publish := fmt.Sprintf("*3\r\n$7\r\nPUBLISH\r\n$1\r\nx\r\n$%d\r\n%s\r\n", 4*mib, make([]byte, 4*mib))
	if _, err := fmt.Fprintf(c, commands, publish); err != nil {
		return plain(err), nil
	}
	n, err := io.Copy(io.Discard, c.in)
	return fmt.Sprintf("%d MiB, then %s", n/mib, cmp.Or(err, io.EOF)), pause(ctx, time.Second)
}
