package mqtt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestAlternate(t *testing.T) {
	for _, test := range []struct{ from, want []string }{
		{[]string{"10.0.0.1"}, []string{"10.0.0.1"}},
		{[]string{"10.0.0.1", "10.0.0.2", "::1", "::2", "::3"}, []string{"10.0.0.1", "::1", "10.0.0.2", "::2", "::3"}},
		{[]string{"::1", "::2", "::ffff:10.0.0.1"}, []string{"::1", "10.0.0.1", "::2"}},
	} {
		var from, want []netip.Addr
		for _, ip := range test.from {
			from = append(from, netip.MustParseAddr(ip))
		}
		for _, ip := range test.want {
			want = append(want, netip.MustParseAddr(ip))
		}
		if got := alternate(from); !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", from, got, want)
		}
	}
}

// closedConn counts its closes in closed.
type closedConn struct {
	net.Conn
	of     int // number of its address
	closed *int
}

func (c closedConn) Close() error {
	*c.closed++
	return nil
}

// TestDialFirst: the address that connects first is used. The next address is tried 250 ms after a silent one
// and at once after one that refuses.
func TestDialFirst(t *testing.T) {
	const silent, refused = -1, -2
	const none, either = -1, -2
	errRefused := errors.New("refused")
	for _, test := range []struct {
		name    string
		answers []time.Duration // of each address: time from the start of its attempt to the answer
		used    int             // number of the address, none or either
		after   time.Duration
		closed  int // number of late connections that are closed
	}{
		{"one", []time.Duration{10 * time.Millisecond}, 0, 10 * time.Millisecond, 0},
		{"the second of the same family", []time.Duration{silent, 0}, 1, attemptDelay, 0},
		{"the fourth", []time.Duration{silent, silent, silent, 0}, 3, 3 * attemptDelay, 0},
		{"refused", []time.Duration{refused, refused, 0}, 2, 0, 0},
		{"the first is slow", []time.Duration{300 * time.Millisecond, silent}, 0, 300 * time.Millisecond, 0},
		{"both", []time.Duration{attemptDelay + time.Millisecond, time.Millisecond}, either, attemptDelay + time.Millisecond, 1},
		{"all refused", []time.Duration{refused, refused}, none, 0, 0},
		{"all silent", []time.Duration{silent, silent}, none, 2 * time.Second, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ips []netip.Addr
				for i := range test.answers {
					ips = append(ips, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
				}
				closed, began := 0, time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				conn, err := dialFirst(ctx, ips, func(ctx context.Context, ip netip.Addr) (net.Conn, error) {
					i := ip.As4()[3]
					switch d := test.answers[i]; d {
					case refused:
						return nil, fmt.Errorf("%d %w", i, errRefused)
					case silent:
						<-ctx.Done()
						return nil, ctx.Err()
					default:
						time.Sleep(d) // the answer comes even if ctx ends
					}
					return closedConn{of: int(i), closed: &closed}, nil
				})
				if took := time.Since(began); took != test.after {
					t.Errorf("took %v, want %v", took, test.after)
				}
				switch {
				case test.used == none && (err == nil || test.answers[0] == refused && err.Error() != "0 refused"):
					t.Errorf("no address answers: %v, %v", conn, err)
				case test.used >= 0 && (err != nil || conn.(closedConn).of != test.used):
					t.Errorf("%v, %v, want the connection to %d", conn, err, test.used)
				}
				if closed != test.closed {
					t.Errorf("%d late connections were closed, want %d", closed, test.closed)
				}
			})
		})
	}
}
