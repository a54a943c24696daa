package neterr

import (
	"errors"
	"net"
	"testing"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.Listen("tcp", ln.Addr().String()); !errors.Is(err, InUse) {
		t.Errorf("a second listener: %v", err)
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, _ := ln.Accept()
		accepted <- conn
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer := <-accepted
	if err := errors.Join(peer.(*net.TCPConn).SetLinger(0), peer.Close(), ln.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, Reset) {
		t.Errorf("read: %v", err)
	}
	for err == nil {
		_, err = conn.Write([]byte("x"))
	}
	if !errors.Is(err, Reset) && !errors.Is(err, Broken) {
		t.Errorf("write: %v", err)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); !errors.Is(err, Refused) {
		t.Errorf("dial: %v", err)
	}
}
