package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/command/ping"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

func (c *checkup) read(ctx context.Context) error {
	began := time.Now()
	reply, err := c.s.Get(ctx, ping.Key)
	check := format.Check{Name: "store", Status: format.Pass, Message: "the store answers", Took: reply.RTT}
	refused, isStore := errors.AsType[*wire.StoreError](err)
	switch {
	case isStore:
		f, _ := c.a.Explain(fault.Describe(client.Get(ping.Key), err))
		check.Status, check.Hint, check.Took = format.Warn, f.Hint, time.Since(began)
		check.Message = fmt.Sprintf("the store answers, but refuses get %s: %s", ping.Key, refused.Text)
	case err != nil:
		return c.fail(ctx, check.Name, fault.Describe(client.Get(ping.Key), err))
	}
	c.a.WarnOf(reply.ReplyInfo)
	return c.print(check)
}

func (c *checkup) roundTrip(ctx context.Context) error {
	const roundTrips = 10
	var took []time.Duration
	for range roundTrips {
		rtt, err := ping.RoundTrip(ctx, c.s, c.o.Timeout)
		if err != nil {
			return c.fail(ctx, "round trip", fault.Describe(client.Get(ping.Key), err))
		}
		took = append(took, rtt)
	}
	if n := c.recorder.answers.Most(); n > 1 {
		return c.fail(ctx, "stores", &fault.StoresError{Answers: n})
	}
	s := ping.Summary(roundTrips, took)
	return c.pass("round trip", s.Avg, fmt.Sprintf("%d times, %v to %v", roundTrips, s.Min.Round(time.Microsecond), s.Max.Round(time.Microsecond)))
}
