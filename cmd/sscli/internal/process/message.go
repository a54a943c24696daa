package process

import (
	"encoding/json"
	"io"
	"syscall"
	"time"
)

// sscli sends orders to its guard, and the guard sends events back, each over a pipe, as
// JSON. One field of a message is set. Strings that may not be UTF-8, which JSON would
// change, are sent as bytes.

// An order is a message of sscli to its guard.
type order struct {
	Secret []byte         `json:",omitempty"` // GuardOptions.Secret
	Limit  *limit         `json:",omitempty"`
	Start  *start         `json:",omitempty"`
	Stop   bool           `json:",omitempty"`
	Keep   bool           `json:",omitempty"` // the Temp of start is not to be removed: sscli lives
	Signal syscall.Signal `json:",omitempty"` // to forward to the command
}

// A limit has the times at which the command is told to end, and killed.
type limit struct{ Term, Kill instant }

// A start says how to start the command.
type start struct {
	Foreground int // process group that gets the terminal back; 0 = the command does not get the terminal
	Grace      time.Duration
	Temp       []byte // directory that is removed if sscli dies
	Env        [][]byte
}

// An event is a message of a guard to sscli.
type event struct {
	Started int            `json:",omitempty"` // process id of the command
	Refused syscall.Errno  `json:",omitempty"` // why the command could not be started
	Late    bool           `json:",omitempty"` // the command was not started: see ErrLate
	Stopped syscall.Signal `json:",omitempty"` // the command was stopped by this signal
	Ended   *End           `json:",omitempty"`
}

// receive sends each message of r to c. It returns when r ends or is not a message, and closes c.
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

// An instant is a point in time that means the same in both processes.
type instant struct {
	Boot time.Duration // boot-time clock: keeps running during suspend and cannot be set
	Wall int64         // wall clock, in nanoseconds: keeps running while a virtual machine is paused
}

// at returns the instant of a time. A delay between its two clock readings makes it too
// early, never too late.
func at(t time.Time) instant {
	boot := uptime()
	return instant{boot + time.Until(t), t.UnixNano()}
}

// left returns the time until an instant, by the clock that is closer to it.
func (i instant) left() time.Duration {
	return min(i.Boot-uptime(), time.Duration(i.Wall-time.Now().UnixNano()))
}

func (i instant) passed() bool { return i.left() <= 0 }

// earlier returns the earlier of two instants, by each clock.
func (i instant) earlier(j instant) instant {
	return instant{min(i.Boot, j.Boot), min(i.Wall, j.Wall)}
}
