//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/scripts/harness"
)

// A publisher sends the notifications that the store would send to the watcher.
type publisher struct {
	conn  *mqtt.Conn
	clock *wire.Clock

	mu  sync.Mutex
	err error // the first refusal
}

func newPublisher(ctx context.Context, broker string) (*publisher, error) {
	conn, err := mqtt.Dial(ctx, mqtt.Options{Address: broker, ClientID: "bench-publisher"})
	if err != nil {
		return nil, fmt.Errorf("connect the publisher: %w", err)
	}
	return &publisher{conn: conn, clock: wire.NewClock("bench", time.Now)}, nil
}

// notification returns the notification of a SET whose value is number, as 16 hex digits.
func (p *publisher) notification(key string, number uint64) (mqtt.Message, error) {
	version, err := p.clock.Tick()
	value := fmt.Appendf(nil, "%016x", number)
	return mqtt.Message{
		Topic:   wire.NotifyTopic(watcher, key),
		Payload: wire.AppendNotification(nil, wire.Notification{Op: wire.OpSet, Value: value, HasValue: true}),
		User:    []mqtt.Property{{Name: wire.PropTimestamp, Value: version.String()}},
	}, err
}

func (p *publisher) publish(ctx context.Context, key string, number uint64) error {
	m, err := p.notification(key, number)
	if err != nil {
		return err
	}
	return p.conn.Publish(ctx, m, p.acked)
}

// acked records the first refusal. It ignores [mqtt.ErrNoSubscribers]: a probe is often sent before
// the watch has subscribed, and any other message is missed when the output is counted.
func (p *publisher) acked(err error) {
	if err == nil || errors.Is(err, mqtt.ErrNoSubscribers) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

// begin runs work concurrently; finish waits for it.
func (p *publisher) begin(work func() error) (finish func() error) {
	done := make(chan error, 1)
	go func() { done <- work() }()
	return func() error {
		if err := <-done; err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.err
	}
}

const (
	flock = 200 // notifications in a write of a flood; must divide the number of events
	ahead = 20  // the maximum number of flocks in flight to the reader
)

// A flood is many prepared notifications of oneKey, numbered from 0.
type flood struct {
	conn   *harness.Raw
	flocks [][]byte
	room   chan struct{} // run sends one value per flock; the reader receives it after the flock
}

func (p *publisher) flood(broker string, events int) (*flood, error) {
	f := &flood{room: make(chan struct{}, ahead)}
	for first := 0; first < events; first += flock {
		var made bytes.Buffer
		for i := range min(flock, events-first) {
			m, err := p.notification(oneKey, uint64(first+i))
			if err != nil {
				return nil, err
			}
			// Two consecutive flocks have different packet ids.
			packet := packets.Publish{PacketID: uint16(1 + (first+i)%(2*flock)), QoS: 1, Topic: m.Topic, Payload: m.Payload,
				Properties: &packets.Properties{User: []packets.User{{Key: m.User[0].Name, Value: m.User[0].Value}}}}
			if _, err := packet.WriteTo(&made); err != nil {
				return nil, err
			}
		}
		f.flocks = append(f.flocks, made.Bytes())
	}
	var err error
	f.conn, err = harness.DialRaw(broker, "bench-flood", "")
	return f, err
}

// run sends a flood, with at most two flocks unacknowledged.
func (f *flood) run(ctx context.Context) error {
	for i, made := range f.flocks {
		select {
		case f.room <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := f.conn.Send(made); err != nil {
			return err
		}
		if i > 0 {
			if err := f.conn.Await(flock, 0, ""); err != nil {
				return err
			}
		}
	}
	return f.conn.Await(flock, 0, "")
}
