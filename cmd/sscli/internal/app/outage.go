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

// OutageInterval is the minimum time between two lines about the same outage.
const OutageInterval = 10 * time.Second

// An Outage tells the user while the broker is unreachable. It prints a line when the outage begins,
// then at most one every OutageInterval with the duration so far, and one when the broker responds
// again. Each line has a timestamp, for logs. The zero Outage means that the broker responds. With a
// nil App it prints nothing. One goroutine at a time may use an Outage.
type Outage struct {
	began   time.Time // zero while the broker responds
	printed time.Time // when the last line was printed
	why     string    // the message of the newest error
}

// Away reports whether the broker is unreachable.
func (o *Outage) Away() bool { return !o.began.IsZero() }

// Began returns when the outage began, or the zero time if there is none.
func (o *Outage) Began() time.Time { return o.began }

// Trouble begins an outage or updates its error, and prints a line if one is due. doing says what
// happens next ("trying again").
func (o *Outage) Trouble(a *App, err error, doing string) {
	o.why = fault.Message(err)
	if o.Away() {
		o.Still(a, doing)
		return
	}
	o.began = time.Now()
	o.say(a, o.why+"; "+doing)
}

// Note replaces the outage's error with a newer one, for the next line. It does nothing if
// err is nil or there is no outage.
func (o *Outage) Note(err error) {
	if err != nil && o.Away() {
		o.why = fault.Message(err)
	}
}

// Still prints how long the outage has lasted, if there is one and a line is due.
func (o *Outage) Still(a *App, doing string) {
	if o.Away() && time.Since(o.printed) >= OutageInterval {
		o.say(a, fmt.Sprintf("the broker has not answered for %v: %s; %s", o.lasted(), o.why, doing))
	}
}

// Over ends an outage, if there is one: it prints that the broker answers again, followed by more.
func (o *Outage) Over(a *App, more string) {
	if !o.Away() {
		return
	}
	if a != nil && !a.Settings.Quiet {
		a.Say(format.Note{Level: format.Notice, Message: fmt.Sprintf("the broker answers again after %v%s", o.lasted(), more), Line: a.Line, Time: time.Now()})
	}
	*o = Outage{}
}

// Report calls Trouble for an error, and Over if err is nil.
func (o *Outage) Report(a *App, err error, doing string) {
	if err == nil {
		o.Over(a, "")
		return
	}
	o.Trouble(a, err, doing)
}

// reconnecting says what a watch does while the connection is lost.
const reconnecting = "connecting again"

// Next returns the next event of a watch. It prints when the connection is lost, how long the
// outage has lasted, and when all keys are watched again. Before it reports the beginning or the
// end of an outage, it flushes queued output.
func (o *Outage) Next(ctx context.Context, a *App, w *client.Watch) (client.Event, error) {
	e, err := o.next(ctx, a, w)
	if err != nil {
		return e, err
	}
	switch e.Kind {
	case client.EventDown:
		err = a.Flush()
		o.Trouble(a, e.Err, reconnecting)
	case client.EventUp:
		err = a.Flush()
		o.Over(a, ", all keys are watched")
	}
	return e, err
}

func (o *Outage) next(ctx context.Context, a *App, w *client.Watch) (client.Event, error) {
	for o.Away() {
		limited, cancel := context.WithTimeoutCause(ctx, OutageInterval, errStillAway)
		e, err := w.Next(limited)
		cancel()
		if !errors.Is(err, errStillAway) {
			return e, err
		}
		o.Note(w.Trouble())
		o.Still(a, reconnecting)
	}
	return w.Next(ctx)
}

var errStillAway = errors.New("the broker is still away")

// lasted returns how long the outage has lasted, rounded for a message.
func (o *Outage) lasted() time.Duration {
	d := time.Since(o.began)
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

func (o *Outage) say(a *App, message string) {
	o.printed = time.Now()
	if a != nil && !a.Settings.Quiet {
		a.Say(format.Note{Level: format.Warning, Message: message, Line: a.Line, Time: o.printed})
	}
}
