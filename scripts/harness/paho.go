package harness

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/sscli/sscli/internal/wire"
)

// A Paho is a connection to the store through paho's client, for comparison with sscli's client.
type Paho struct {
	*Requests
	Client *paho.Client
}

// DialPaho connects to a broker and subscribes to the replies. It calls answered for each reply,
// one at a time.
func DialPaho(ctx context.Context, address string, answered func(*paho.Publish)) (*Paho, error) {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &Paho{Requests: NewRequests("bench-paho")}
	p.Client = paho.NewClient(paho.ClientConfig{
		Conn: nc,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(r paho.PublishReceived) (bool, error) {
			answered(r.Packet)
			return true, nil
		}},
	})
	if _, err := p.Client.Connect(ctx, &paho.Connect{ClientID: p.id, CleanStart: true, KeepAlive: 60}); err != nil {
		return nil, err
	}
	_, err = p.Client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: wire.ResponseTopic(p.id), QoS: 1}}})
	return p, err
}

// Requests builds the requests of one client.
type Requests struct {
	id     string
	clock  *wire.Clock
	number int // of the last request
}

// NewRequests returns Requests for the client with this id.
func NewRequests(id string) *Requests {
	return &Requests{id: id, clock: wire.NewClock(id, time.Now)}
}

// Request returns the next request. It has the same properties as a request of sscli's client.
func (r *Requests) Request(words ...string) (*paho.Publish, error) {
	ts, err := r.clock.Tick()
	if err != nil {
		return nil, err
	}
	r.number++
	expiry := uint32(10)
	return &paho.Publish{
		QoS: 1, Topic: wire.RequestTopic, Payload: wire.AppendRequest(nil, words...),
		Properties: &paho.PublishProperties{
			CorrelationData: fmt.Appendf(nil, "%016x", r.number), ResponseTopic: wire.ResponseTopic(r.id),
			ContentType: wire.ContentType, MessageExpiry: &expiry,
			User: paho.UserProperties{
				{Key: wire.PropTimestamp, Value: ts.String()}, {Key: wire.PropSource, Value: r.id},
				{Key: wire.PropProtocol, Value: wire.ProtocolVersion}, {Key: wire.PropPartition, Value: r.id},
			},
		},
	}, nil
}

// Close disconnects.
func (p *Paho) Close() error { return p.Client.Disconnect(&paho.Disconnect{}) }

// PahoRate sends sequential GETs with paho's client for the duration long, and returns the GETs per
// second.
func PahoRate(ctx context.Context, e Endpoint, key string, long time.Duration) (float64, error) {
	replies := make(chan *paho.Publish, 1)
	p, err := DialPaho(ctx, e.Address(), func(m *paho.Publish) { replies <- m })
	if err != nil {
		return 0, err
	}
	defer func() { _ = p.Close() }() // not part of the measurement
	return Rate(long, func() error {
		request, err := p.Request(wire.VerbGet, key)
		if err != nil {
			return err
		}
		if _, err := p.Client.Publish(ctx, request); err != nil {
			return err
		}
		select {
		case m := <-replies:
			if got, want := string(m.Properties.CorrelationData), string(request.Properties.CorrelationData); got != want {
				return fmt.Errorf("reply to request %s, want %s", got, want)
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
