package admission

import (
	"runtime"
	"sync"
	"sync/atomic"
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
	rested time.Time    // when a goroutine in line last let others run; guarded by mu
	length atomic.Int64 // how many goroutines stand in line, with the first

	once  sync.Once
	turns chan struct{} // see handshakeTurns
}

// handshakeTurns holds a value for each TLS handshake that a CPU works on. Its capacity is half the CPUs. Handshakes do
// not stand in the line itself, because each takes longer than anything else that does.
func (l *Line) handshakeTurns() chan struct{} {
	l.once.Do(func() { l.turns = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)) })
	return l.turns
}

// maxChain bounds the time for which work in line delays goroutines that are ready to run.
const maxChain = 500 * time.Microsecond

// IsLong reports whether many goroutines stand in line. While they are few, a caller should do outside of the line what
// needs no turn: the processors that the line keeps idle then cost more than they help others.
func (l *Line) IsLong() bool { return l.length.Load() > maxShort }

// maxShort is the greatest length of a short line.
const maxShort = 64

// Lock waits for the caller's turn.
func (l *Line) Lock() {
	l.length.Add(1)
	l.mu.Lock()
	if now := time.Now(); now.Sub(l.rested) > maxChain {
		runtime.Gosched()
		l.rested = time.Now()
	}
}

// Unlock ends the caller's turn.
func (l *Line) Unlock() {
	l.length.Add(-1)
	l.mu.Unlock()
}
