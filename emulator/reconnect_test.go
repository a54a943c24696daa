package emulator_test

import (
	"sync"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// TestReconnectKeepsItsSubscription: a client that reconnects with its id just as its last connection is
// cleaned up keeps its new subscriptions.
func TestReconnectKeepsItsSubscription(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t)
	const clients, rounds = 8, 50
	ctx := t.Context()
	var running sync.WaitGroup
	for i := range clients {
		id := string(rune('a' + i))
		running.Go(func() {
			for range rounds {
				replies := make(chan mqtt.Message, 1)
				conn, err := mqtt.Dial(ctx, mqtt.Options{
					Address: server.Addr().String(), ClientID: id,
					Subscribe: []string{"answers/" + id},
					OnMessage: func(m mqtt.Message) { replies <- m },
				})
				if err != nil {
					t.Error(err)
					return
				}
				err = conn.Publish(ctx, mqtt.Message{
					Topic: wire.RequestTopic, Payload: wire.AppendRequest(nil, "GET", "k"),
					ResponseTopic: "answers/" + id, Correlation: []byte("1"),
				}, func(error) {})
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case <-replies:
				case <-ctx.Done():
					t.Error("no reply")
				case <-conn.Done():
					t.Error(conn.Err())
				}
				running.Go(func() { conn.Close() }) // while the next connection is opened
			}
		})
	}
	running.Wait()
}
