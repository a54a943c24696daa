// Package admission limits the resources that clients can use before they log in. A [Gate] limits
// connections and memory, and a [Throttle] limits login attempts. [URL] returns
// where clients find a server.
package admission

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Defaults of a [Gate].
const (
	defaultPending      = 256
	defaultPendingBytes = 16 << 20
)

// A Gate limits a server's connections. The zero value admits any number of clients, but at most
// 256 may be pending (not logged in yet), and pending clients may reserve 16 MiB together. A Gate
// is safe for concurrent use.
type Gate struct {
	MaxClients   int // limit of open connections; 0 = none
	MaxPending   int // limit of pending clients; 0 = 256
	PendingBytes int // bytes that pending clients may reserve together; 0 = 16 MiB

	mu       sync.Mutex
	clients  int
	pending  []*Ticket // oldest first
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

// Enter admits a connection, or returns nil if MaxClients clients are connected. If too many
// clients are pending, Enter calls the evict function of the oldest pending client from the address
// that has the most pending clients, so that an attacker evicts mainly its own connections. An
// evicted connection counts toward MaxClients until Leave. from is the client's HOST:PORT.
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
	if len(g.pending) > cmp.Or(g.MaxPending, defaultPending) {
		victim = g.victim()
		victim.settle()
	}
	g.mu.Unlock()
	if victim != nil {
		victim.evict()
	}
	return t
}

// victim returns the oldest pending ticket from the address that has the most pending tickets. The
// caller holds g.mu.
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

// LoggedIn records that the client has logged in, and frees its reservation.
func (t *Ticket) LoggedIn() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.settle()
}

// Leave records that the connection has ended. Calling Leave again does nothing.
func (t *Ticket) Leave() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.settle()
	if !t.left {
		t.left = true
		t.gate.clients--
	}
}

// Reserve sets the reservation of a pending client, in bytes. It returns false if the reservation
// grows and all reservations together then exceed PendingBytes; the reservation is set even so.
func (t *Ticket) Reserve(bytes int) bool {
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	grown := bytes > t.reserved
	g.reserved += bytes - t.reserved
	t.reserved = bytes
	return !grown || g.reserved <= cmp.Or(g.PendingBytes, defaultPendingBytes)
}

// settle removes t from the pending tickets and frees its reservation. The caller holds t.gate.mu.
func (t *Ticket) settle() {
	g := t.gate
	if i := slices.Index(g.pending, t); i >= 0 {
		g.pending = slices.Delete(g.pending, i, i+1)
	}
	g.reserved -= t.reserved
	t.reserved = 0
}

// Network returns the network of a client's HOST:PORT. Limits per address apply to this network: a
// single IPv4 address, or the 64-bit prefix of an IPv6 address, because one host may own the whole
// prefix. Network returns the zero Prefix if HOST is not an IP address.
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
	network, _ := ip.Prefix(bits) // cannot fail: bits is valid for ip
	return network
}

// URL returns the URL of a listener's address for clients on this machine.
func URL(scheme string, at net.Addr) string {
	host, port, err := net.SplitHostPort(at.String())
	if ip, bad := netip.ParseAddr(host); err == nil && bad == nil && ip.IsUnspecified() {
		return scheme + "://" + net.JoinHostPort("127.0.0.1", port)
	}
	return scheme + "://" + at.String()
}
