package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

// crowd is the number of an attacker's connections that act at the same moment.
const crowd = 2000

// crowds returns the attacks in which many connections do a little at the same moment.
func crowds() []attack {
	// heirs subscribes clients that do not read to a topic.
	heirs := func(ctx context.Context, t *target, topic string) error {
		_, err := inParallel(ctx, t.scale(500), func(i int) error {
			c, err := connectTo(t, connectOptions{id: fmt.Sprint("heir", i)})
			if err != nil {
				return err
			}
			return c.subscribe(topic)
		})
		return err
	}
	var filters []string
	for i := range 10 {
		filters = append(filters, fmt.Sprint("a", i), fmt.Sprint("b/+/", i), fmt.Sprintf("c%d/#", i))
	}
	// atOnce connects the crowd, calls setUp for each client, and then f for each client.
	atOnce := func(ctx context.Context, t *target, o connectOptions, f func(*client) error, setUp ...func(*client) error) (string, error) {
		clients := make([]*client, t.scale(crowd))
		if n, err := inParallel(ctx, len(clients), func(i int) (err error) {
			own := o
			own.id = fmt.Sprint("crowd", i)
			clients[i], err = connectToStore(t, own)
			for j := 0; j < len(setUp) && err == nil; j++ {
				err = setUp[j](clients[i])
			}
			return err
		}); err != nil {
			return fmt.Sprintf("%d clients, then %s", n, plain(err)), nil
		}
		for _, c := range clients {
			go func() { _, _ = io.Copy(io.Discard, c) }()
		}
		for _, c := range clients {
			if err := f(c); err != nil {
				return answered("", err)
			}
		}
		return fmt.Sprintf("%d clients", len(clients)), pause(ctx, t.afterwards())
	}
	publishToTen := func(ctx context.Context, t *target, count int) (string, error) {
		if _, err := inParallel(ctx, 10, func(i int) error {
			c, err := connectTo(t, connectOptions{id: fmt.Sprint("reader", i)})
			if err == nil {
				err = c.subscribe("news")
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
			return err
		}); err != nil {
			return "", err
		}
		burst := bytes.Repeat(publishPacket("news", 0, make([]byte, 100)), count)
		return atOnce(ctx, t, connectOptions{}, func(c *client) error { _, err := c.Write(burst); return err })
	}
	return []attack{
		{name: "2,000 clients with a will of 1 KB to 500 that do not read, closed at once", run: func(ctx context.Context, t *target) (string, error) {
			if err := heirs(ctx, t, "will"); err != nil {
				return "", err
			}
			return atOnce(ctx, t, connectOptions{will: make([]byte, 1000)}, (*client).Close)
		}},
		{name: "2,000 clients with a will of 1 KB to 500 that do not read, which ask for it with DISCONNECT at once", run: func(ctx context.Context, t *target) (string, error) {
			if err := heirs(ctx, t, "will"); err != nil {
				return "", err
			}
			return atOnce(ctx, t, connectOptions{will: make([]byte, 1000)}, func(c *client) error {
				_, err := c.Write([]byte{packets.DISCONNECT << 4, 1, packets.DisconnectDisconnectWithWillMessage})
				return err
			})
		}},
		{name: "2,000 clients with a will, closed at once, beside 500 that publish 200 messages at a time", run: func(ctx context.Context, t *target) (string, error) {
			burst := bytes.Repeat(publishPacket("news", 0, make([]byte, 100)), 200)
			if _, err := inParallel(ctx, t.scale(500), func(i int) error {
				c, err := connectTo(t, connectOptions{id: fmt.Sprint("busy", i)})
				if err != nil {
					return err
				}
				go func() {
					for err := error(nil); err == nil; { // until hangUp
						_, err = c.Write(burst)
					}
				}()
				return nil
			}); err != nil {
				return answered("", err)
			}
			return awaitWills(ctx, t, t.scale(crowd))
		}},
		{name: "2,000 clients with 30 subscriptions, closed at once", run: func(ctx context.Context, t *target) (string, error) {
			return atOnce(ctx, t, connectOptions{}, (*client).Close, func(c *client) error { return c.subscribe(filters...) })
		}},
		{name: "2,000 clients that subscribe to 30 filters at once", run: func(ctx context.Context, t *target) (string, error) {
			return atOnce(ctx, t, connectOptions{}, func(c *client) error {
				_, err := c.Write(subscribePacket(&packets.Properties{}, filters...))
				return err
			})
		}},
		{name: "2,000 clients that unsubscribe from 30 filters at once", run: func(ctx context.Context, t *target) (string, error) {
			return atOnce(ctx, t, connectOptions{}, func(c *client) error {
				_, err := c.Write(encoded(&packets.Unsubscribe{PacketID: 2, Topics: filters, Properties: &packets.Properties{}}))
				return err
			}, func(c *client) error { return c.subscribe(filters...) })
		}},
		{name: "2,000 Redis clients with ten subscriptions, closed at once", run: func(ctx context.Context, t *target) (string, error) {
			return redisCrowd(ctx, t, (*redisClient).Close, func(c *redisClient) error {
				_, err := c.do(patience, []byte("PSUBSCRIBE"), []byte("a*"), []byte("b*"), []byte("c*"), []byte("d*"), []byte("e*"), []byte("f*"), []byte("g*"), []byte("h*"), []byte("i*"), []byte("j*"))
				return err
			})
		}},
		{name: "2,000 clients that publish 200 messages to ten at once", run: func(ctx context.Context, t *target) (string, error) {
			return publishToTen(ctx, t, 200)
		}},
		{name: "2,000 clients that publish 15 messages to ten at once", run: func(ctx context.Context, t *target) (string, error) {
			return publishToTen(ctx, t, 15)
		}},
		{name: "2,000 clients that publish to 500 that do not read, at once", run: func(ctx context.Context, t *target) (string, error) {
			if err := heirs(ctx, t, "news"); err != nil {
				return "", err
			}
			return atOnce(ctx, t, connectOptions{}, func(c *client) error { _, err := c.Write(publishPacket("news", 0, make([]byte, 1000))); return err })
		}},
		{name: "2,000 clients that subscribe to 2,000 retained messages at once", run: func(ctx context.Context, t *target) (string, error) {
			c, err := connectTo(t, connectOptions{id: "publisher"})
			if err != nil {
				return "", err
			}
			var all []byte
			for i := range t.scale(2000) {
				all = append(all, encoded(&packets.Publish{Topic: fmt.Sprint("old/", i), Retain: true, Payload: make([]byte, 100), Properties: &packets.Properties{}})...)
			}
			if _, err := c.Write(all); err != nil {
				return "", err
			}
			if err := c.ping(); err != nil {
				return "", err
			}
			return atOnce(ctx, t, connectOptions{}, func(c *client) error {
				_, err := c.Write(subscribePacket(&packets.Properties{}, "old/#"))
				return err
			})
		}},
		{name: "2,000 clients that send 50 SETs at once", run: func(ctx context.Context, t *target) (string, error) {
			t.stored.Add(crowd * 1000)
			return atOnce(ctx, t, connectOptions{}, func(c *client) error {
				_, err := c.Write(bytes.Repeat(c.requestPacket([]byte("SET"), []byte(c.id), make([]byte, 100)), 50))
				return err
			})
		}},
		{name: "2,000 clients that send a SCAN of a pattern of 1 KB at once", run: func(ctx context.Context, t *target) (string, error) {
			if err := keysOfLetters(t); err != nil {
				return answered("", err)
			}
			return atOnce(ctx, t, connectOptions{}, func(c *client) error { return c.request([]byte("SCAN"), expensive(1000)) })
		}},
		{name: "2,000 clients that GET a value of 200 KB at once", run: func(ctx context.Context, t *target) (string, error) {
			w, err := connectToRedis(t)
			if err == nil {
				_, err = w.do(patience, []byte("SET"), []byte("large"), make([]byte, 200_000))
			}
			if err != nil {
				return answered("", err)
			}
			return atOnce(ctx, t, connectOptions{}, func(c *client) error { return c.request([]byte("GET"), []byte("large")) })
		}},
		{name: "2,000 Redis clients that send a SCAN of 10,000 keys at once", run: func(ctx context.Context, t *target) (string, error) {
			if err := keysOfLetters(t); err != nil {
				return answered("", err)
			}
			return redisAtOnce(ctx, t, fmt.Sprintf("SCAN 0 COUNT 10000 MATCH %s\r\n", expensive(1000)))
		}},
		{name: "2,000 Redis clients that send 500 SETs at once", run: func(ctx context.Context, t *target) (string, error) {
			t.stored.Add(crowd * 1000)
			return redisAtOnce(ctx, t, strings.Repeat("SET k v\r\n", 500))
		}},
		{name: "2,000 Redis clients that send 200 SETs at once", run: func(ctx context.Context, t *target) (string, error) {
			t.stored.Add(crowd * 1000)
			return redisAtOnce(ctx, t, strings.Repeat("SET k v\r\n", 200))
		}},
		{name: "2,000 Redis clients that send an MSET of 400 keys at once", run: func(ctx context.Context, t *target) (string, error) {
			t.stored.Add(crowd * 1000)
			return redisAtOnce(ctx, t, "MSET"+strings.Repeat(" k v", 400)+"\r\n")
		}},
		{name: "2,000 Redis clients that PUBLISH at once, beside 200 patterns of 1 KB, and a SET", run: func(ctx context.Context, t *target) (string, error) {
			if err := patterns(t, 200); err != nil {
				return answered("", err)
			}
			w, err := connectToRedis(t)
			if err != nil {
				return "", err
			}
			go func() {
				for err := error(nil); err == nil; { // waits for the messages while it has locked the store
					_, err = w.do(time.Minute, []byte("SET"), []byte("k"), []byte("v"))
				}
			}()
			return redisAtOnce(ctx, t, fmt.Sprintf("PUBLISH %s m\r\n", bytes.Repeat([]byte("a"), 1000)))
		}},
		{name: "2,000 Redis clients that send CLIENT LIST at once, and a SET", run: func(ctx context.Context, t *target) (string, error) {
			if err := patterns(t, 1); err != nil {
				return answered("", err)
			}
			w, err := connectToRedis(t)
			if err != nil {
				return "", err
			}
			go func() {
				for err := error(nil); err == nil; {
					_, err = w.do(time.Minute, []byte("SET"), []byte("k"), []byte("v"))
				}
			}()
			return redisAtOnce(ctx, t, "CLIENT LIST\r\n")
		}},
		{name: "4,000 messages of one byte to 10,000 filters with identifiers, not acknowledged", memory: true, run: func(ctx context.Context, t *target) (string, error) {
			c, err := connectTo(t, connectOptions{id: "overlap"})
			if err != nil {
				return "", err
			}
			const levels = 14 // so that 2^14 filters match one topic
			topic := strings.Repeat("l/", levels)
			for i := range t.scale(10_000) {
				filter := []byte(topic)
				for bit := range levels {
					if i>>bit&1 == 1 {
						filter[2*bit] = '+'
					}
				}
				id := 200_000_000 + i
				if _, err := c.Write(subscribePacket(&packets.Properties{SubscriptionIdentifier: &id}, string(filter)+"#")); err != nil {
					return answered("", err)
				}
				if err := c.await(packets.SUBACK); err != nil {
					return answered("", err)
				}
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
			publisher, err := connectTo(t, connectOptions{id: "publisher"})
			if err != nil {
				return "", err
			}
			for i := range t.scale(4000) {
				if _, err := publisher.Write(publishPacket(fmt.Sprint(topic, i), 1, []byte("x"))); err != nil {
					return answered("", err)
				}
				if err := publisher.await(packets.PUBACK); err != nil {
					return fmt.Sprintf("%d messages, then %s", i, plain(err)), nil
				}
			}
			return "all messages", nil
		}},
	}
}

// awaitWills connects clients with a will, closes them at once, and waits until all wills have been published.
func awaitWills(ctx context.Context, t *target, n int) (string, error) {
	heir, err := connectTo(t, connectOptions{id: "heir"})
	if err == nil {
		err = heir.subscribe("will")
	}
	if err != nil {
		return answered("", err)
	}
	clients := make([]*client, n)
	if _, err := inParallel(ctx, n, func(i int) (err error) {
		clients[i], err = connectTo(t, connectOptions{id: fmt.Sprint("will", i), will: []byte("gone")})
		return err
	}); err != nil {
		return answered("", err)
	}
	closed, latest := time.Now(), t.within(5*time.Second) // whatever others do
	for _, c := range clients {
		c.Close()
	}
	_ = heir.SetReadDeadline(closed.Add(latest))
	for i := range n {
		if err := heir.await(packets.PUBLISH); err != nil {
			return "", breach(fmt.Sprintf("%d of %d wills within %v", i, n, latest))
		}
	}
	return fmt.Sprintf("%d wills within %.1f s", n, time.Since(closed).Seconds()), nil
}

// redisAtOnce connects the crowd to the Redis port, and then writes the same commands for each client.
func redisAtOnce(ctx context.Context, t *target, commands string) (string, error) {
	return redisCrowd(ctx, t, func(c *redisClient) error {
		go func() { _, _ = io.Copy(io.Discard, c) }()
		_, err := io.WriteString(c, commands)
		return err
	})
}

// redisCrowd connects the crowd to the Redis port, calls setUp for each client, and then f for each client.
func redisCrowd(ctx context.Context, t *target, f func(*redisClient) error, setUp ...func(*redisClient) error) (string, error) {
	clients := make([]*redisClient, t.scale(crowd))
	if _, err := inParallel(ctx, len(clients), func(i int) (err error) {
		clients[i], err = connectToRedis(t)
		for j := 0; j < len(setUp) && err == nil; j++ {
			err = setUp[j](clients[i])
		}
		return err
	}); err != nil {
		return answered("", err)
	}
	for _, c := range clients {
		if err := f(c); err != nil {
			return answered("", err)
		}
	}
	return fmt.Sprintf("%d clients", len(clients)), pause(ctx, t.afterwards())
}

// patterns subscribes a client to expensive patterns.
func patterns(t *target, n int) error {
	c, err := connectToRedis(t)
	for i := 0; i < n && err == nil; i++ {
		_, err = c.do(patience, []byte("PSUBSCRIBE"), append(expensive(1000), fmt.Sprint(i)...))
	}
	return err
}

// keysOfLetters stores keys that take long to match with an expensive pattern.
func keysOfLetters(t *target) error {
	c, err := connectToRedis(t)
	for i := 0; i < 1000 && err == nil; i++ {
		key := append(bytes.Repeat([]byte("a"), 1000), fmt.Sprint(i)...)
		_, err = c.do(patience, []byte("SET"), key, []byte("v"))
	}
	return err
}
