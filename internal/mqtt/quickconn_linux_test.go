package mqtt

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestQuickAck reads the kernel's state: after a request and its reply, a connection delays acknowledgements
// unless it was set not to.
func TestQuickAck(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	echoed := make(chan struct{})
	go func() {
		defer close(echoed)
		for range 2 {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			defer nc.Close()
			buf := make([]byte, 8)
			for {
				n, err := nc.Read(buf)
				if err != nil {
					break
				}
				nc.Write(buf[:n])
			}
		}
	}()
	for _, test := range []struct {
		inFlight int64
		want     int
	}{{0, 1}, {busy + 1, 0}} {
		var inFlight atomic.Int64
		inFlight.Store(test.inFlight)
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		quick := newQuickConn(nc, &inFlight)
		raw, err := nc.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var got int
		// The kernel begins with quick acknowledgements and needs some exchanges to change. It begins anew when an
		// acknowledgement was due for longer than 40 ms, as on a slow machine.
		for n, end := 0, time.Now().Add(time.Minute); n < 40 || got != test.want && time.Now().Before(end); n++ {
			if _, err := quick.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := quick.Read(make([]byte, 8)); err != nil {
				t.Fatal(err)
			}
			var optErr error
			err = raw.Control(func(fd uintptr) {
				got, optErr = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK)
			})
			if err != nil || optErr != nil {
				t.Fatal(err, optErr)
			}
		}
		if got != test.want {
			t.Errorf("with %d in flight TCP_QUICKACK is %d, want %d", test.inFlight, got, test.want)
		}
		nc.Close()
	}
	<-echoed
}

// TestQuickAckBeneath: the connection beneath TLS is a quickConn.
func TestQuickAckBeneath(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	o := Options{Address: ln.Addr().String(), inFlight: new(atomic.Int64)}
	nc, err := dialNet(t.Context(), o, &certificateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, ok := tls.Client(nc, nil).NetConn().(*quickConn); !ok {
		t.Errorf("beneath is a %T", nc)
	}
}
