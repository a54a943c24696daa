package process

import (
	"encoding/json"
	"io"
	"syscall"
	"time"
)

// sscli sends orders to its guard over one pipe, and the guard sends events over another. The
// messages are JSON, and each has one field set. Strings that might not be valid UTF-8 are
// sent as bytes, because JSON would change them.

// An order is a message from sscli to its guard.
type order struct {
	Secret []byte         `json:",omitempty"` // GuardOptions.Secret
	Limit  *limit         `json:",omitempty"`
	Start  *start         `json:",omitempty"`
	Stop   bool           `json:",omitempty"`
	Within time.Duration  `json:",omitempty"` // with Stop, the most time between TERM and KILL; 0 = start.Grace
	Keep   bool           `json:",omitempty"` // do not remove start.Temp: sscli has not died
	Signal syscall.Signal `json:",omitempty"` // signal to forward to the command
}

// A limit holds the times at which the command gets TERM and KILL.
type limit struct{ Term, Kill instant }

// A start is the order to start the command.
type start struct {
	Foreground int // sscli's process group, which gets the terminal back; 0 = the command gets no terminal
	Grace      time.Duration
	Temp       []byte // directory that the guard removes if sscli dies; empty = none
	Env        [][]byte
}

// An event is a message from a guard to sscli.
type event struct {
	Started int            `json:",omitempty"` // process id of the command
	Refused syscall.Errno  `json:",omitempty"` // why the command could not be started
	Late    bool           `json:",omitempty"` // the command was not started: see ErrLate
	Stopped syscall.Signal `json:",omitempty"` // the signal that stopped the command
	Ended   *End           `json:",omitempty"`
}

// receive decodes the messages in r and sends them to c. It closes c and returns when r ends or contains
// anything but messages.
func receive[T any](r io.Reader, c chan<- T) {
	defer close(c)
	for d := json.NewDecoder(r); ; {
		var m T
		if d.Decode(&m) != nil {
			return
		}
		c <- m
	}
}

// report sends an event to sscli. It ignores errors: if sscli has died, the pipe of orders is closed too,
// and run ends.
func (g *guard) report(e event) { _ = json.NewEncoder(g.events).Encode(e) }

// An instant is a point in time, on two clocks that sscli and the guard share.
type instant struct {
	Boot time.Duration // time since boot, on a clock that cannot be set; on Linux and Windows, includes suspend
	Wall int64         // wall clock, in nanoseconds: keeps running while a virtual machine is paused
}

// at converts a time to an instant. A delay between the two clock readings makes the instant too
// early, never too late.
func at(t time.Time) instant {
	boot := uptime()
	return instant{boot + time.Until(t), t.UnixNano()}
}

// left returns the time until i, by the clock that reaches i first.
func (i instant) left() time.Duration {
	return min(i.Boot-uptime(), time.Duration(i.Wall-time.Now().UnixNano()))
}

func (i instant) passed() bool { return i.left() <= 0 }

// earlier returns the earlier of two instants, separately for each clock.
func (i instant) earlier(j instant) instant {
	return instant{min(i.Boot, j.Boot), min(i.Wall, j.Wall)}
}
