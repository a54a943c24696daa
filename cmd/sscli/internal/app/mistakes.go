package app

import (
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// mistakes holds the messages of a command of many writes. Once such a command has written something, a usage
// error has another exit code, so the messages wait until that is known.
type mistakes struct {
	holds bool            // the form of output shows exit codes, and nothing was written yet
	wrote bool            // a write was made, or may have been
	held  []format.Result // the first mistake before any write, and the messages after it
}

// HoldMistakes begins a command of many writes whose mistakes get another exit code once something was written: see
// [fault.Partial]. In a form of output that shows exit codes, a mistake, and what is said after it, waits for the first write
// ([App.Wrote]) or the end of the command. The caller must call settle with the command's error; it returns the error to return.
func (a *App) HoldMistakes() (settle func(err error) error) {
	a.saying.Lock()
	defer a.saying.Unlock()
	m := &mistakes{holds: a.Output != "human" && a.Output != "raw"}
	a.mistakes = m
	return func(err error) error {
		a.saying.Lock()
		defer a.saying.Unlock()
		a.release()
		a.mistakes = nil
		if m.wrote {
			return fault.Partial(err)
		}
		return err
	}
}

// Wrote records that the command made a write, or may have. It does nothing without HoldMistakes.
func (a *App) Wrote() {
	a.saying.Lock()
	defer a.saying.Unlock()
	if a.mistakes != nil && !a.mistakes.wrote {
		a.mistakes.wrote = true
		a.release()
	}
}

// say prints or holds a message.
func (a *App) say(r format.Result) {
	m := a.mistakes
	f, isFault := r.(format.Fault)
	switch mistake := isFault && f.Code == fault.CodeUsage; {
	case m != nil && m.holds && (mistake || len(m.held) > 0):
		m.held = append(m.held, r)
		return
	case m != nil && m.wrote && mistake:
		f.Code = fault.CodePartial
		r = f
	}
	_ = a.Faults.Print(r)
}

// release prints the held messages, and holds no others.
func (a *App) release() {
	m := a.mistakes
	held := m.held
	m.holds, m.held = false, nil
	for _, r := range held {
		a.say(r)
	}
}
