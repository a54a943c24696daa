package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// OutageInterval is the minimum time between two warnings about the same outage.
const OutageInterval = 10 * time.Second

// An Outage informs the user about outages. It prints a line when the broker becomes unreachable, then
// at most one line per OutageInterval with the duration so far, and a line when the broker answers again.
// Each line has a timestamp, for logs. A new Outage assumes that the broker answers. One goroutine at
// a time may use an Outage.
type Outage struct {
	Notify func(format.Note) // prints a line; nil = nothing is printed

	began   time.Time // zero while the broker answers
	printed time.Time // when the last line was printed
	why     string    // the message of the newest error
}

// Away reports whether the broker is unreachable.
func (r *Outage) Away() bool { return !r.began.IsZero() }

// Began returns when the outage began, or the zero time if there is none.
func (r *Outage) Began() time.Time { return r.began }

// Trouble begins an outage or, during an outage, replaces its error. It prints a line if one is due.
// doing says what sscli does next, such as "trying again".
func (r *Outage) Trouble(err error, doing string) {
	r.why = fault.Message(err)
	if r.Away() {
		r.Still(doing)
		return
	}
	r.began = time.Now()
	r.print(format.Warning, r.why+"; "+doing)
}

// note replaces the outage's error with a newer one, which the next line shows. It does nothing if
// err is nil or there is no outage.
func (r *Outage) note(err error) {
	if err != nil && r.Away() {
		r.why = fault.Message(err)
	}
}

// Still prints how long the outage has lasted, if there is one and a line is due. doing is as for
// Trouble.
func (r *Outage) Still(doing string) {
	if r.Away() && time.Since(r.printed) >= OutageInterval {
		r.print(format.Warning, fmt.Sprintf("the broker has not answered for %v: %s; %s", r.Lasted(), r.why, doing))
	}
}

// Over ends the outage, if there is one, and prints that the broker answers again. more is text to
// append to the line.
func (r *Outage) Over(more string) {
	if !r.Away() {
		return
	}
	r.print(format.Notice, fmt.Sprintf("the broker answers again after %v%s", r.Lasted(), more))
	*r = Outage{Notify: r.Notify}
}

// Report calls Trouble for an error, and Over if err is nil.
func (r *Outage) Report(err error, doing string) {
	if err == nil {
		r.Over("")
		return
	}
	r.Trouble(err, doing)
}

// reconnecting says what a watch does while the connection is lost.
const reconnecting = "connecting again"

// Next returns the next event of a watch. While it waits, it prints how long an outage has lasted. It
// also prints when the connection is lost, and when all keys are watched again. Before these two
// messages, it calls flush, which prints queued results.
func (r *Outage) Next(ctx context.Context, w *client.Watch, flush func() error) (client.Event, error) {
	e, err := r.next(ctx, w)
	if err != nil {
		return e, err
	}
	switch e.Kind {
	case client.EventDown:
		err = flush()
		r.Trouble(e.Err, reconnecting)
	case client.EventUp:
		err = flush()
		r.Over(", all keys are watched")
	}
	return e, err
}

func (r *Outage) next(ctx context.Context, w *client.Watch) (client.Event, error) {
	for r.Away() {
		limited, cancel := context.WithTimeoutCause(ctx, OutageInterval, errStillAway)
		e, err := w.Next(limited)
		cancel()
		if !errors.Is(err, errStillAway) {
			return e, err
		}
		r.note(w.Trouble())
		r.Still(reconnecting)
	}
	return w.Next(ctx)
}

var errStillAway = errors.New("the broker is still away")

// Lasted returns the duration of the present outage, rounded for a message.
func (r *Outage) Lasted() time.Duration {
	d := time.Since(r.began)
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

func (r *Outage) print(level format.Level, message string) {
	r.printed = time.Now()
	if r.Notify != nil {
		r.Notify(format.Note{Level: level, Message: message, Time: r.printed})
	}
}
