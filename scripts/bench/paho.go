//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/scripts/harness"
)

// requests builds the requests of one client.
type requests struct {
	id     string
	clock  *wire.Clock
	number int // number of the last request
}

func newRequests(id string) *requests { return &requests{id: id, clock: wire.NewClock(id, time.Now)} }

// next returns the next request. It has the same properties as a request of sscli's client.
func (r *requests) next(words ...string) *paho.Publish {
	r.number++
	expiry := uint32(10)
	return &paho.Publish{
		QoS: 1, Topic: wire.RequestTopic, Payload: wire.AppendRequest(nil, words...),
		Properties: &paho.PublishProperties{
			CorrelationData: fmt.Appendf(nil, "%016x", r.number), ResponseTopic: wire.ResponseTopic(r.id),
			ContentType: wire.ContentType, MessageExpiry: &expiry,
			User: paho.UserProperties{
				{Key: wire.PropTimestamp, Value: harness.Must(r.clock.Tick()).String()}, {Key: wire.PropSource, Value: r.id},
				{Key: wire.PropProtocol, Value: wire.ProtocolVersion}, {Key: wire.PropPartition, Value: r.id},
			},
		},
	}
}

// packets returns the bytes of the next n requests with these words.
func (r *requests) packets(n int, words ...string) (all []byte) {
	for i := range n {
		packet := r.next(words...).Packet()
		packet.PacketID = uint16(i + 1)
		all = append(all, encoded(packet)...)
	}
	return all
}

// dialPaho connects to a broker with paho's client and subscribes to the replies. It calls answered
// for each reply, one at a time.
func dialPaho(ctx context.Context, address string, answered func(*paho.Publish)) (*paho.Client, *requests) {
	r := newRequests("bench-paho")
	client := paho.NewClient(paho.ClientConfig{
		Conn: harness.Must(net.Dial("tcp", address)),
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			answered(p.Packet)
			return true, nil
		}},
	})
	harness.Must(client.Connect(ctx, &paho.Connect{ClientID: r.id, CleanStart: true, KeepAlive: 60}))
	harness.Must(client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: wire.ResponseTopic(r.id), QoS: 1}}}))
	return client, r
}

// pahoRate sends sequential GETs with paho's client, and returns the GETs per second.
func pahoRate(ctx context.Context, e endpoint, key string, long time.Duration) float64 {
	replies := make(chan *paho.Publish, 1)
	client, r := dialPaho(ctx, e.address(), func(m *paho.Publish) { replies <- m })
	defer func() { _ = client.Disconnect(&paho.Disconnect{}) }() // not part of the measurement
	return rate(long, func() {
		request := r.next(wire.VerbGet, key)
		harness.Must(client.Publish(ctx, request))
		select {
		case m := <-replies:
			if got, want := string(m.Properties.CorrelationData), string(request.Properties.CorrelationData); got != want {
				harness.Check(fmt.Errorf("reply to request %s, want %s", got, want))
			}
		case <-ctx.Done():
			harness.Check(ctx.Err())
		}
	})
}

// pahoSets does the same as batch with paho's client: it runs the set commands on standard input, with up to
// inflight requests in flight, and prints the replies.
func pahoSets(ctx context.Context, address string, inflight int) error {
	return harness.Try(func() {
		room := make(chan struct{}, inflight)
		enter := func() {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				harness.Check(ctx.Err())
			}
		}
		out := bufio.NewWriter(os.Stdout)
		client, r := dialPaho(ctx, address, func(m *paho.Publish) {
			if _, err := wire.ParseReply(m.Payload); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return // the request stays in flight, so that the last loop fails when ctx ends
			}
			fmt.Fprintf(out, "OK\t%s\n", m.Properties.User.Get(wire.PropTimestamp))
			<-room
		})
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			words := strings.Fields(lines.Text())
			enter()
			harness.Must(client.PublishWithOptions(ctx, r.next(wire.VerbSet, words[1], words[2]), paho.PublishOptions{Method: paho.PublishMethod_AsyncSend}))
		}
		for range inflight { // wait until all requests are answered
			enter()
		}
		harness.Check(client.Disconnect(&paho.Disconnect{}))
		harness.Check(out.Flush())
	})
}
