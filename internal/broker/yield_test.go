package broker

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestYield: on one processor, a goroutine that waits for the lock gets it at the next yield of a long job.
// Without the yield, the job would run until Go's scheduler preempts it.
func TestYield(t *testing.T) {
	t.Parallel()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b := New(Options{})
	defer b.Close()
	var yields atomic.Int64
	var done atomic.Bool
	b.Lock()
	b.later(func() {
		for !done.Load() {
			for begin := time.Now(); time.Since(begin) < 100*time.Microsecond; {
			}
			b.yield()
			yields.Add(1)
		}
	})
	b.Unlock()
	defer done.Store(true)
	const times = 50
	for range times {
		runtime.Gosched() // lets the job run
		b.Lock()
		_ = b.Stats()
		b.Unlock()
	}
	if n := yields.Load(); n > 4*times {
		t.Errorf("the job yielded %d times while another goroutine locked the broker %d times", n, times)
	}
}

// TestReadOutOfLine: the parts of a large packet are read without standing in line, where each of them would wait
// for all the others.
func TestReadOutOfLine(t *testing.T) {
	t.Parallel()
	b := New(Options{})
	defer b.Close()
	client, server := net.Pipe()
	defer client.Close()
	b.serveConn(server, "")
	b.Line().Lock()
	defer b.Line().Unlock()
	if err := client.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	connect := append([]byte{typeConnect << 4, 0xff, 0xff, 0x03}, make([]byte, 40_000)...)
	if _, err := client.Write(connect); err != nil {
		t.Error(err)
	}
}

// TestHandleInLine: a large packet is handled in line, however few of its bytes came last.
func TestHandleInLine(t *testing.T) {
	t.Parallel()
	for _, last := range []int{1, 100, 40_000} {
		inLine := make(chan bool, 1)
		b := New(Options{Topic: "t", Handle: func(c *Client, _ *Publish) byte {
			inLine <- c.b.inLine
			return Success
		}})
		defer b.Close()
		c := writingClient(t, b)
		publish := append([]byte{typePublish << 4, 0xc3, 0xb8, 0x02, 0, 1, 't'}, make([]byte, 40_000)...)
		c.handlePackets(publish, last)
		if !<-inLine {
			t.Errorf("the packet whose last %d bytes came is handled out of line", last)
		}
	}
}

// TestCrowdsInLine: while others wait, a connection ends in line, whatever ends it, and so do many topic filters.
func TestCrowdsInLine(t *testing.T) {
	t.Parallel()
	var filters []byte
	for i := range 9 {
		filters = append(filters, 0, 1, '0'+byte(i), 0)
	}
	for _, test := range []struct {
		name string
		sent []byte // what the client sends last; nil = it closes the connection
	}{
		{"closed", nil},
		{"disconnect", []byte{typeDisconnect << 4, 0}},
		{"disconnect with the will", []byte{typeDisconnect << 4, 1, 4}},
		{"garbage", []byte{0, 0}},
		{"subscribe", append([]byte{typeSubscribe<<4 | 2, byte(3 + len(filters)), 0, 1, 0}, filters...)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inLine := make(chan bool, 10)
			var b *Broker
			b = New(Options{
				Disconnected: func(*Client) { inLine <- b.inLine },
				Authorize:    func(*Identity, string, bool) bool { inLine <- b.inLine; return true },
			})
			defer b.Close()
			client, server := net.Pipe()
			defer client.Close()
			b.serveConn(server, "")
			if err := client.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Write([]byte("\x10\x0e\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x01c")); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Read(make([]byte, 1000)); err != nil { // CONNACK
				t.Fatal(err)
			}
			b.waiting.Add(1)
			if test.sent == nil {
				client.Close()
			} else if _, err := client.Write(test.sent); err != nil {
				t.Fatal(err)
			}
			if !<-inLine {
				t.Error("it did not stand in line")
			}
		})
	}
}

// TestTurnsOfMany: who works for many clients takes a turn for each of them, so that they do not wait for a round of all
// who stand in line each.
func TestTurnsOfMany(t *testing.T) {
	t.Parallel()
	const many, busy, rounds = 200, 10, 20
	for _, test := range []struct {
		name  string
		begin func(b *Broker, clients []*Client, done func())
	}{
		{"endings", func(b *Broker, clients []*Client, _ func()) {
			for _, c := range clients[1:] {
				b.endings.queue = append(b.endings.queue, ending{c, nil, true})
			}
			b.end(ending{clients[0], nil, true})
		}},
		{"jobs", func(b *Broker, clients []*Client, done func()) {
			b.Lock()
			for range clients {
				b.later(done)
			}
			b.Unlock()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var left, turns atomic.Int64
			left.Store(many)
			ended := make(chan struct{})
			done := func() {
				if left.Add(-1) == 0 {
					close(ended)
				}
			}
			b := New(Options{Disconnected: func(*Client) { done() }})
			defer b.Close()
			var clients []*Client
			for range many {
				c := writingClient(t, b)
				c.Identity, c.ticket = c.session.who, b.gate.Enter("", func() {})
				clients = append(clients, c)
			}
			var all sync.WaitGroup
			for range busy {
				all.Go(func() {
					for {
						select {
						case <-ended:
							return
						default:
						}
						b.lockFor(muchWork)
						turns.Add(1)
						for begin := time.Now(); time.Since(begin) < 200*time.Microsecond; {
						}
						b.Unlock()
					}
				})
			}
			before := turns.Load()
			test.begin(b, clients, done)
			<-ended
			n := turns.Load() - before
			all.Wait()
			if n > busy*rounds {
				t.Errorf("%d others in line took %d turns before %d were done", busy, n, many)
			}
		})
	}
}

// TestJobsOneByOne: each job runs once, and none before those that were queued earlier have ended, also if a job is queued
// while the last one ends.
func TestJobsOneByOne(t *testing.T) {
	t.Parallel()
	b := New(Options{})
	defer b.Close()
	var all sync.WaitGroup
	busy := false
	for range 4 {
		all.Go(func() {
			for range 3000 {
				ended := make(chan struct{})
				b.Lock()
				b.later(func() {
					if busy {
						t.Error("a job runs beside another, or twice")
					}
					busy = true
					b.yield()
					busy = false
					close(ended)
				})
				b.Unlock()
				<-ended
			}
		})
	}
	all.Wait()
}
