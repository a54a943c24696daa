package emulator

import (
	"cmp"
	"time"

	"github.com/sscli/sscli/client/wire"
)

// expiries is a heap of the entries that run out, the next first.
type expiries []*entry

func (x expiries) Len() int { return len(x) }

func (x expiries) Less(i, j int) bool {
	return cmp.Or(x[i].deadline.Compare(x[j].deadline), cmp.Compare(x[i].key, x[j].key)) < 0
}

func (x expiries) Swap(i, j int) {
	x[i], x[j] = x[j], x[i]
	x[i].index, x[j].index = i, j
}

func (x *expiries) Push(v any) {
	en := v.(*entry)
	en.index = len(*x)
	*x = append(*x, en)
}

func (x *expiries) Pop() any {
	last := len(*x) - 1
	en := (*x)[last]
	(*x)[last] = nil
	*x = (*x)[:last]
	en.index = -1
	return en
}

func (en *entry) due(now time.Time) bool {
	return !en.deadline.IsZero() && !now.Before(en.deadline)
}

// Expire removes the keys that have run out and returns the notifications, which
// are those of a deletion (protocol.md 2.6, 2.7). A fence does not keep a key
// (protocol.md 4 row 17).
func (e *Engine) Expire() []Notification {
	e.now = e.opts.Now()
	e.expire()
	return e.takeNotes()
}

func (e *Engine) expire() {
	for len(e.expiries) > 0 && e.expiries[0].due(e.now) {
		e.drop(e.expiries[0], CauseExpired, "", wire.Version{})
	}
}

// NextExpiry tells when the next key runs out, on the store's clock.
func (e *Engine) NextExpiry() (time.Time, bool) {
	if len(e.expiries) == 0 {
		return time.Time{}, false
	}
	return e.expiries[0].deadline, true
}
