package admission

import (
	"runtime"
	"sync"
	"time"
)

// A Line is a lock for goroutines with much work. They get it in their order, mostly without
// another goroutine running in between. So once maxChain has passed, the next one lets others run first.
//
// The line also keeps processors idle. Go looks for sockets that have become readable when a processor has nothing
// to run, and otherwise only every 10 ms, for at most 128 sockets at a time. If all processors worked for the
// crowd, a client that wants little would wait until Go has noticed all sockets that became readable before its own.
type Line struct {
	mu     sync.Mutex
	rested time.Time // when a goroutine in line last let others run; guarded by mu
}

// maxChain bounds the time for which work in line delays goroutines that are ready to run.
const maxChain = 500 * time.Microsecond

// Lock waits for the caller's turn.
func (l *Line) Lock() {
	l.mu.Lock()
	if now := time.Now(); now.Sub(l.rested) > maxChain {
		runtime.Gosched()
		l.rested = time.Now()
	}
}

// Unlock ends the caller's turn.
func (l *Line) Unlock() { l.mu.Unlock() }
