package emulator

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// TestAttachedQueue: replies that wait to be sent are limited by all their bytes, also those that clients choose.
func TestAttachedQueue(t *testing.T) {
	t.Parallel()
	a := &Attached{wake: make(chan struct{}, 1), cancel: func(error) {}, proven: time.Now().Add(time.Hour)}
	a.opts.Now = time.Now
	var err error
	if a.engine, _, err = openStore(a.opts, Data{}, &a.mu, context.CancelCauseFunc(a.cancel)); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 60_000)
	request := mqtt.Message{
		Topic: wire.RequestTopic, QoS: 1, Payload: []byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"),
		ResponseTopic: "replies/" + long, Correlation: []byte(long),
	}
	for range maxWaitingBytes/(2*len(long)) + 2 {
		a.receive(new(asker), request)
	}
	if last := string(a.queue[len(a.queue)-1].Payload); last != "-ERR the quota has been exceeded\r\n" {
		t.Errorf("after %d replies of 120 KB: %q", len(a.queue), last)
	}
}
