// Package admission bounds what clients can cost a server before they have logged in: a [Gate]
// their connections and memory, a [Throttle] their attempts to log in.
package admission

import (
	"net/netip"
	"sync"
)

// Defaults of a [Gate].
const (
	defaultPending      = 256
	defaultPendingBytes = 16 << 20
)

// A Gate counts the connections of a server. The zero value admits any number of clients, and
// 256 that have not logged in, with 16 MiB. Its methods may be called by several goroutines.
type Gate struct {
	MaxClients   int // open connections; 0: any number
	MaxPending   int // those that have not logged in; 0: 256
	PendingBytes int // memory that those may reserve together; 0: 16 MiB

	mu       sync.Mutex
	clients  int
	pending  []*Ticket // the oldest first
	reserved int
}

// A Ticket is a connection that a [Gate] has admitted.
type Ticket struct {
	gate     *Gate
	address  netip.Prefix
	evict    func()
	reserved int
	left     bool
}

// Enter admits a connection, or returns nil if there are MaxClients. If there are too many that
// have not logged in, it calls evict of one of them: the oldest one from the address that
// has the most, so that an attacker evicts mainly itself. from is HOST:PORT. The evicted one leaves when it has ended.
func (g *Gate) Enter(from string, evict func()) *Ticket {
	g.mu.Lock()
	if g.MaxClients > 0 && g.clients >= g.MaxClients {
		g.mu.Unlock()
		return nil
	}
	t := &Ticket{gate: g, address: Network(from), evict: evict}
	g.clients++
	g.pending = append(g.pending, t)
	var victim *Ticket
	if len(g.pending) > orDefault(g.MaxPending, defaultPending) {
		victim = g.victim()
		victim.settle()
	}
	g.mu.Unlock()
	if victim != nil {
		victim.evict()
	}
	return t
}

func orDefault(limit, standard int) int {
	if limit > 0 {
		return limit
	}
	return standard
}

// victim returns the oldest pending ticket of the address that has the most. It requires g.mu.
func (g *Gate) victim() *Ticket {
	counts := make(map[netip.Prefix]int)
	victim := g.pending[0]
	for _, t := range g.pending {
		counts[t.address]++
	}
	for _, t := range g.pending {
		if counts[t.address] > counts[victim.address] {
			victim = t
		}
	}
	return victim
}

// LoggedIn records that the client has logged in. What it has reserved is free again.
func (t *Ticket) LoggedIn() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.settle()
}

// Leave records that the connection has ended. Further calls do nothing.
func (t *Ticket) Leave() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.settle()
	if !t.left {
		t.left = true
		t.gate.clients--
	}
}

// Reserve sets how many bytes the client, which has not logged in, makes the server keep. It
// returns false if all such clients together have too many.
func (t *Ticket) Reserve(bytes int) bool {
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	grown := bytes > t.reserved
	g.reserved += bytes - t.reserved
	t.reserved = bytes
	return !grown || g.reserved <= orDefault(g.PendingBytes, defaultPendingBytes)
}

// settle removes the ticket from the pending ones. It requires the gate's mu.
func (t *Ticket) settle() {
	g := t.gate
	for i, other := range g.pending {
		if other == t {
			g.pending = append(g.pending[:i], g.pending[i+1:]...)
			break
		}
	}
	g.reserved -= t.reserved
	t.reserved = 0
}

// Network returns what counts as one address of a connection from HOST:PORT: an IPv4 address, or the
// 64-bit prefix of an IPv6 address, all of which one host may have. It is the zero Prefix for
// addresses that are not IP.
func Network(from string) netip.Prefix {
	at, err := netip.ParseAddrPort(from)
	if err != nil {
		return netip.Prefix{}
	}
	ip := at.Addr().Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	network, _ := ip.Prefix(bits) // the number of bits is valid
	return network
}
