package main

import (
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptFullListener listens with a full accept queue: clients wait forever to connect, as they do behind a firewall.
func scriptFullListener(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: full-listener")
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	ts.Check(err)
	ts.Defer(func() { syscall.Close(fd) })
	ts.Check(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	ts.Check(syscall.Listen(fd, 0))
	name, err := syscall.Getsockname(fd)
	ts.Check(err)
	port := name.(*syscall.SockaddrInet4).Port
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for {
		conn, err := net.DialTimeout("tcp", address, 200*time.Millisecond)
		if err != nil {
			break
		}
		ts.Defer(func() { conn.Close() })
	}
	ts.Setenv("SSCLI_URL", "mqtt://"+address)
	ts.Setenv("PORT", strconv.Itoa(port))
}
