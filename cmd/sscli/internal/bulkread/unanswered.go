package bulkread

import (
	"context"
	"fmt"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/internal/wire"
)

// probeTimeout limits the request with which [Unanswered] finds out whether the store answers.
const probeTimeout = time.Second

// Unanswered takes the error of a command. If the command is a GET that timed out although the store
// answers another one, Unanswered adds a hint: the value may be larger than any client can receive, and
// then a longer timeout does not help. Otherwise, it returns err.
func Unanswered(ctx context.Context, s *client.Session, c client.Command, err error) error {
	if c.Verb() != wire.VerbGet || !isLost(err) || ctx.Err() != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, probeErr := s.Get(limited, app.ProbeKey)
	if probeErr != nil && !fault.IsA[*client.StoreError](probeErr) {
		return err
	}
	return &fault.NextError{Err: err, Hint: suggest.Say(fmt.Sprintf("the store answers other requests, so the value may be larger than any client can receive: "+
		"a packet has at most %d bytes; divide such a value among several keys", s.MaxPacketSize()))}
}

// unanswered is like [Unanswered], but after a GET to which the store did not answer either, it asks no more.
func (s *Store) unanswered(ctx context.Context, c client.Command, err error) error {
	s.mu.Lock()
	silent := s.silent
	s.mu.Unlock()
	if silent || !isLost(err) {
		return err
	}
	explained := Unanswered(ctx, s.Session, c, err)
	s.mu.Lock()
	s.silent = explained == err
	s.mu.Unlock()
	return explained
}
