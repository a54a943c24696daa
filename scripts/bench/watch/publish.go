package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
)

// A publisher sends what the store would send to the watcher.
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

// acked notes a refusal. A probe often has no subscriber yet; any other message without
// one shows in the counts.
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

// begin runs work beside the caller; finish waits for it.
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
