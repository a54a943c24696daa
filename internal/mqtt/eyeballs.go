package mqtt

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

// attemptDelay is the Connection Attempt Delay of RFC 8305, 5: how long after the start of one attempt to
// connect the next one starts, if the first has not failed by then.
const attemptDelay = 250 * time.Millisecond

// dialTCP connects to the first address of a host that answers, as RFC 8305 says. A net.Dialer tries one
// address of IPv4 and one of IPv6 at the same time, but addresses of the same family one after the other, for
// seconds each.
func (d quickDialer) dialTCP(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return d.Dialer.DialContext(ctx, network, address) // its error says more
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return d.Dialer.DialContext(ctx, network, address)
	}
	resolver := d.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	ips, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return dialFirst(ctx, alternate(ips), func(ctx context.Context, ip netip.Addr) (net.Conn, error) {
		return d.Dialer.DialContext(ctx, network, net.JoinHostPort(ip.String(), port))
	})
}

// alternate returns addresses with the families of IP in turn, beginning with the family of the first
// (RFC 8305, 4).
func alternate(ips []netip.Addr) []netip.Addr {
	var same, other []netip.Addr
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.Is4() == ips[0].Unmap().Is4() {
			same = append(same, ip)
		} else {
			other = append(other, ip)
		}
	}
	var mixed []netip.Addr
	for i := range max(len(same), len(other)) {
		mixed = append(mixed, same[min(i, len(same)):min(i+1, len(same))]...)
		mixed = append(mixed, other[min(i, len(other)):min(i+1, len(other))]...)
	}
	return mixed
}

// dialFirst calls dial for each address, attemptDelay apart or as soon as an attempt has failed, and
// returns the first connection. If all attempts fail, it returns the error of the first address.
func dialFirst(ctx context.Context, ips []netip.Addr, dial func(context.Context, netip.Addr) (net.Conn, error)) (net.Conn, error) {
	type attempt struct {
		i    int
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan attempt, len(ips))
	var dialing sync.WaitGroup
	defer func() {
		cancel()
		dialing.Wait()
		close(ended)
		for late := range ended {
			if late.err == nil {
				late.conn.Close()
			}
		}
	}()
	errs := make([]error, len(ips))
	next := time.NewTimer(0)
	defer next.Stop()
	for started, failed := 0, 0; failed < len(ips); {
		select {
		case <-next.C:
			if i := started; i < len(ips) {
				dialing.Go(func() {
					conn, err := dial(ctx, ips[i])
					ended <- attempt{i, conn, err}
				})
				started++
				next.Reset(attemptDelay)
			}
		case a := <-ended:
			if a.err == nil {
				return a.conn, nil
			}
			errs[a.i] = a.err
			failed++
			next.Reset(0)
		}
	}
	return nil, errs[0]
}
