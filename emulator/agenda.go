package emulator

import (
	"slices"
	"time"
)

// agenda is what the server has to do later, by the store's clock.
type agenda []appointment

type appointment struct {
	due time.Time
	do  func()
}

// add puts an appointment behind those of the same time.
func (a *agenda) add(due time.Time, do func()) {
	i, _ := slices.BinarySearchFunc(*a, due, func(x appointment, due time.Time) int {
		if x.due.After(due) {
			return 1
		}
		return -1
	})
	*a = slices.Insert(*a, i, appointment{due, do})
}

// pop returns the first appointment if it is due.
func (a *agenda) pop(now time.Time) (func(), bool) {
	if len(*a) == 0 || now.Before((*a)[0].due) {
		return nil, false
	}
	first := (*a)[0]
	(*a)[0] = appointment{}
	*a = (*a)[1:]
	return first.do, true
}

// now is the store's clock. s.mu is held.
func (s *Server) now() time.Time { return time.Now().Add(s.offset) }

// keepTime runs what comes due by itself.
func (s *Server) keepTime() {
	defer s.timer.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-s.timer.C:
			s.update(func() {
				s.armed = time.Time{}
				s.runDue()
			})
		}
	}
}

// nextDue is the next appointment or expiry.
func (s *Server) nextDue() (time.Time, bool) {
	due, ok := s.engine.NextExpiry()
	if len(s.agenda) > 0 && (!ok || s.agenda[0].due.Before(due)) {
		return s.agenda[0].due, true
	}
	return due, ok
}

// arm sets the timer to what comes next.
func (s *Server) arm() {
	due, ok := s.nextDue()
	if !ok || due.Equal(s.armed) {
		return // a timer that rings for nothing does no harm
	}
	s.armed = due
	s.timer.Reset(due.Sub(s.now()))
}

// runDue does what is due, in the order of time.
func (s *Server) runDue() {
	for {
		due, ok := s.nextDue()
		if !ok || s.now().Before(due) {
			return
		}
		if expiry, ok := s.engine.NextExpiry(); ok && expiry.Equal(due) {
			s.engine.Expire()
			s.notify(s.engine.TakeNotifications())
			continue
		}
		if do, ok := s.agenda.pop(s.now()); ok {
			do()
		}
	}
}

// after does something later on the store's clock, or at once.
func (s *Server) after(d time.Duration, do func()) {
	if d <= 0 {
		do()
		return
	}
	s.agenda.add(s.now().Add(d), do)
}
