package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/wire"

	"github.com/sscli/sscli/scripts/harness"
)

// holds returns the attacks with single requests that are large, or that affect very many keys.
func holds() []attack {
	return []attack{
		{name: "SET, GET, APPEND, COPY, DELIFEQ and EXPIRE of 200 MB", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToRedis(t))
			value := make([]byte, t.scale(200_000_000))
			t.stored.Add(2 * int64(len(value)))
			last := ""
			for _, words := range [][][]byte{{[]byte("SET"), []byte("k"), value}, {[]byte("APPEND"), []byte("k"), []byte("x")},
				{[]byte("COPY"), []byte("k"), []byte("j")}, {[]byte("EXPIRE"), []byte("k"), []byte("1000")},
				{[]byte("DELIFEQ"), []byte("k"), slices.Concat(value, []byte("y"))}, {[]byte("GET"), []byte("k")}} {
				var err error
				last, err = c.do(patience, words...)
				want(err)
			}
			_, err := c.in.Discard(len(value))
			return answered(last, err)
		}},
		{name: "SET, notification, GET and PUBLISH of 200 MB by MQTT", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToStore(t, connectOptions{id: "attacker"}))
			harness.Check(c.subscribe("topic"))
			value := make([]byte, t.scale(200_000_000))
			t.stored.Add(int64(len(value)))
			message := encoded(&packets.Publish{Topic: "topic", Payload: value, Properties: &packets.Properties{}})
			for _, p := range []struct {
				packet   []byte
				messages int // number of messages that the server then sends to the attacker
			}{
				{c.requestPacket([]byte("KEYNOTIFY"), []byte("k")), 1},
				{c.requestPacket([]byte("SET"), []byte("k"), value), 2},
				{c.requestPacket([]byte("GET"), []byte("k")), 1},
				{message, 1},
			} {
				wanted(c.Write(p.packet))
				for range p.messages {
					wanted(c.reply(patience))
				}
			}
			return fmt.Sprintf("three messages of %d MB", len(value)/1_000_000), nil
		}},
		{name: "options, numbers, names and a verb of 200 MB", run: func(_ context.Context, t *target) (string, error) {
			c, store := harness.Must(connectToRedis(t)), harness.Must(connectToStore(t, connectOptions{id: "attacker"}))
			word := bytes.Repeat([]byte{0xff}, t.scale(200_000_000))
			wanted(store.Write(store.requestPacket(word)))
			wanted(store.reply(patience))
			t.stored.Add(int64(len(word)))
			wanted(c.do(patience, []byte("SET"), []byte("k"), word))
			for _, command := range []string{"SET k v", "SS.SET k v", "EXPIRE k 10", "SCAN", "SCAN 0 COUNT", "INCRBYFLOAT n", "WATCH", "CLIENT SETNAME", "SUBSCRIBE"} {
				wanted(c.do(patience, append(bytes.Fields([]byte(command)), word)...))
			}
			return answered(c.do(patience, []byte("INCRBYFLOAT"), []byte("k"), []byte("1")))
		}},
		{name: "a PUBLISH of 200 MB to 1,000 patterns by Redis", run: func(_ context.Context, t *target) (string, error) {
			c, other := harness.Must(connectToRedis(t)), harness.Must(connectToRedis(t))
			for i := range t.scale(1000) {
				wanted(other.do(patience, []byte("PSUBSCRIBE"), bytes.Repeat([]byte("*"), i+1)))
				for range 5 { // the other lines of the reply
					wanted(other.in.ReadString('\n'))
				}
			}
			return answered(c.do(patience, []byte("PUBLISH"), []byte("channel"), make([]byte, t.scale(200_000_000))))
		}},
		{name: "a request of 40 million words", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToStore(t, connectOptions{id: "attacker"}))
			n := t.scale(40_000_000)
			want(c.send(append(fmt.Appendf(nil, "*%d\r\n", n), bytes.Repeat([]byte("$0\r\n\r\n"), n)...)))
			return answered(c.reply(patience))
		}},
		{name: "a request of 40 million values in one word", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToStore(t, connectOptions{id: "attacker"}))
			n := t.scale(40_000_000)
			want(c.send(append(fmt.Appendf(nil, "*1\r\n*%d\r\n", n), bytes.Repeat([]byte("_\r\n"), n)...)))
			return answered(c.reply(patience))
		}},
		{name: "a PUBLISH with 200 MB of user properties", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectTo(t, connectOptions{id: "attacker"}))
			properties := bytes.Repeat([]byte("\x26\x00\x01k\x00\x01v"), t.scale(200_000_000)/7)
			body := append([]byte("\x00\x01t"), binary.AppendUvarint(nil, uint64(len(properties)))...)
			body = append(body, properties...)
			wanted(c.Write(append(binary.AppendUvarint([]byte{0x30}, uint64(len(body))), body...)))
			_ = c.SetReadDeadline(time.Now().Add(patience))
			p, err := packets.ReadPacket(c.in)
			want(err)
			return p.PacketType(), nil
		}},
		{name: "WATCH and MGET of 400,000 keys, SUBSCRIBE to as many channels, PUBSUB CHANNELS", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToRedis(t))
			var names [][]byte
			for i := range t.scale(400_000) {
				names = append(names, fmt.Append(nil, "name", i))
			}
			for _, command := range []string{"WATCH", "MGET", "EXISTS", "SUBSCRIBE"} {
				other := harness.Must(connectToRedis(t))
				wanted(other.do(patience, append([][]byte{[]byte(command)}, names...)...))
				if command == "SUBSCRIBE" {
					wanted(other.in.Discard(len(names) * 30))
				} else {
					want(other.Close())
				}
			}
			return answered(c.do(patience, []byte("PUBSUB"), []byte("CHANNELS"), []byte("*1*")))
		}},
		{name: "CLIENT KILL with 150,000 addresses, and CLIENT LIST with 150,000 ids, of 200 Redis clients", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToRedis(t))
			for range 200 {
				_ = harness.Must(connectToRedis(t))
			}
			n := t.scale(150_000)
			address := [][]byte{[]byte("LADDR"), []byte(c.LocalAddr().String())}
			kill := slices.Concat([][]byte{[]byte("CLIENT"), []byte("KILL")}, slices.Repeat(address, n))
			list := slices.Concat([][]byte{[]byte("CLIENT"), []byte("LIST"), []byte("ID")}, slices.Repeat([][]byte{[]byte("999999")}, n))
			wanted(c.do(patience, list...))
			wanted(c.in.Discard(2))
			return answered(c.do(patience, kill...))
		}},
		{name: "a transaction of 8,000 APPENDs to a value of 1 MB", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToRedis(t))
			t.stored.Add(1_000_000)
			wanted(c.do(patience, []byte("SET"), []byte("k"), make([]byte, 1_000_000)))
			n := t.scale(8000)
			queued := strings.Repeat("*3\r\n$6\r\nAPPEND\r\n$1\r\nk\r\n$1\r\nx\r\n", n)
			wanted(c.Write([]byte("*1\r\n$5\r\nMULTI\r\n" + queued)))
			for range n + 1 {
				wanted(c.in.ReadString('\n'))
			}
			return answered(c.do(patience, []byte("EXEC")))
		}},
		{name: "20 transactions of 800 GETs of 10 KB", run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectToRedis(t))
			wanted(c.do(patience, []byte("SET"), []byte("k"), make([]byte, 10_000)))
			n := t.scale(800)
			transaction := []byte("MULTI\r\n" + strings.Repeat("GET k\r\n", n) + "EXEC\r\n")
			for i := range 20 {
				wanted(c.Write(transaction))
				for range n + 1 { // the replies to MULTI and to the queued commands
					wanted(c.in.ReadString('\n'))
				}
				if line, err := c.in.ReadString('\n'); err != nil || line != fmt.Sprintf("*%d\r\n", n) {
					return answered(fmt.Sprintf("transaction %d: %q", i, line), err)
				}
				wanted(c.in.Discard(n*len("$10000\r\n\r\n") + n*10_000))
			}
			return fmt.Sprintf("20 times %d replies", n), nil
		}},
		{name: "300,000 keys that expire in one moment", run: func(ctx context.Context, t *target) (string, error) {
			c := harness.Must(connectToRedis(t))
			n := t.scale(300_000)
			moment := time.Now().Add(time.Duration(2+n/100_000) * time.Second)
			t.stored.Add(int64(n) * 200)
			var all []byte
			for i := range n {
				all = fmt.Appendf(all, "SET key%d v PXAT %d\r\n", i, moment.UnixMilli())
			}
			go func() { _, _ = c.Write(all) }() // after an error, the loop below lacks a reply and fails
			for range n {
				wanted(c.in.ReadString('\n'))
			}
			harness.Check(pause(ctx, time.Until(moment)+time.Second))
			return answered(c.do(patience, []byte("DBSIZE")))
		}},
		{name: "1,000 clients with KEYNOTIFY of one key of 30 KB, ten SETs of 100 KB", run: func(_ context.Context, t *target) (string, error) {
			key := bytes.Repeat([]byte("k"), 30_000)
			watchers := watchKey(t, key, false)
			c := harness.Must(connectToStore(t, connectOptions{id: "attacker"}))
			for range 10 {
				want(c.request([]byte("SET"), key, make([]byte, 100_000)))
				wanted(c.reply(patience))
			}
			return fmt.Sprintf("%d watchers", watchers), nil
		}},
		{name: "1,000 clients that read, with KEYNOTIFY of one key, 200 SETs of 200 KB at once", run: func(ctx context.Context, t *target) (string, error) {
			watchers := watchKey(t, []byte("key"), true)
			c := harness.Must(connectToStore(t, connectOptions{id: "attacker"}))
			go func() { _, _ = io.Copy(io.Discard, c) }()
			for range t.scale(200) {
				want(c.request([]byte("SET"), []byte("key"), make([]byte, 200_000)))
			}
			return fmt.Sprintf("%d watchers", watchers), pause(ctx, t.afterwards())
		}},
		{name: "300,000 KEYNOTIFYs of five clients that then leave", run: func(ctx context.Context, t *target) (string, error) {
			n := t.scale(60_000) // below the default Receive Maximum: the attacker sends no PUBACKs
			if _, err := inParallel(ctx, 5, func(i int) error {
				c, err := connectToStore(t, connectOptions{id: fmt.Sprint("watcher", i)})
				if err != nil {
					return err
				}
				go func() {
					for j := range n {
						if c.request([]byte("KEYNOTIFY"), fmt.Append(nil, "key", j)) != nil {
							return // the loop below lacks a reply and fails
						}
					}
				}()
				for range n {
					if _, err := c.reply(patience); err != nil {
						return err
					}
				}
				return c.Close()
			}); err != nil {
				return answered("", err)
			}
			return fmt.Sprintf("%d registrations", 5*n), pause(ctx, time.Second)
		}},
	}
}

// send sends a request with an arbitrary payload to the store.
func (c *client) send(payload []byte) error {
	_, err := c.Write(encoded(&packets.Publish{Topic: wire.RequestTopic, QoS: 1, PacketID: 1, Payload: payload,
		Properties: &packets.Properties{ResponseTopic: wire.ResponseTopic(c.id), CorrelationData: []byte("1")}}))
	return err
}

// watchKey registers 1,000 clients for the notifications of a key, which they read or not, and returns their number.
func watchKey(t *target, key []byte, read bool) int {
	watchers, err := inParallel(context.Background(), t.scale(1000), func(i int) error {
		c, err := connectToStore(t, connectOptions{id: fmt.Sprint("watcher", i)})
		if err != nil {
			return err
		}
		if err := c.request([]byte("KEYNOTIFY"), key); err != nil {
			return err
		}
		if _, err = c.reply(patience); err == nil && read {
			go func() { _, _ = io.Copy(io.Discard, c) }()
		}
		return err
	})
	want(err)
	return watchers
}
