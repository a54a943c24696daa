package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
)

// A pahoClient asks the store by way of paho's client.
type pahoClient struct {
	c       *paho.Client
	id      string
	answers chan *paho.Publish
	clock   *wire.Clock
	asked   uint64
}

func dialPaho(ctx context.Context, address string) (*pahoClient, error) {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &pahoClient{id: client.NewClientID(), answers: make(chan *paho.Publish, 1), clock: wire.NewClock("paho", time.Now)}
	p.c = paho.NewClient(paho.ClientConfig{
		Conn: nc,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){
			func(r paho.PublishReceived) (bool, error) {
				p.answers <- r.Packet
				return true, nil
			},
		},
	})
	if _, err := p.c.Connect(ctx, &paho.Connect{ClientID: p.id, CleanStart: true, KeepAlive: 60}); err != nil {
		return nil, err
	}
	_, err = p.c.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: wire.ResponseTopic(p.id), QoS: 1}}})
	return p, err
}

func (p *pahoClient) get(ctx context.Context, key string) error {
	ts, err := p.clock.Tick()
	if err != nil {
		return err
	}
	p.asked++
	correlation := fmt.Sprintf("%016x", p.asked)
	expiry := uint32(10)
	_, err = p.c.Publish(ctx, &paho.Publish{
		QoS: 1, Topic: wire.RequestTopic, Payload: wire.AppendRequest(nil, wire.VerbGet, key),
		Properties: &paho.PublishProperties{
			CorrelationData: []byte(correlation), ResponseTopic: wire.ResponseTopic(p.id), ContentType: wire.ContentType, MessageExpiry: &expiry,
			User: paho.UserProperties{
				{Key: wire.PropTimestamp, Value: ts.String()}, {Key: wire.PropSource, Value: p.id},
				{Key: wire.PropProtocol, Value: wire.ProtocolVersion}, {Key: wire.PropPartition, Value: p.id},
			},
		},
	})
	if err != nil {
		return err
	}
	select {
	case m := <-p.answers:
		if string(m.Properties.CorrelationData) != correlation {
			return fmt.Errorf("an answer to something else: %q", m.Payload)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close says goodbye; what comes of it is no part of the measurement.
func (p *pahoClient) close() { _ = p.c.Disconnect(&paho.Disconnect{}) }
