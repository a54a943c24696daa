package emulator

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/testkit/redistest"
	"github.com/sscli/sscli/internal/wire"
)

// TestLargeNotifications: while the notifications of a large value are sent to many watchers, other clients
// can use the broker. All watchers get all changes in the same order.
func TestLargeNotifications(t *testing.T) {
	t.Parallel()
	const watchers, writers, writes = 40, 2, 8
	s := Start(t)
	var reading sync.WaitGroup
	heard := make([][]string, watchers)
	for i := range watchers {
		id := fmt.Sprint("w", i)
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		connect := packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: id, CleanStart: true, Properties: &packets.Properties{}}
		if _, err := connect.WriteTo(conn); err != nil {
			t.Fatal(err)
		}
		if _, err := packets.ReadPacket(conn); err != nil {
			t.Fatal(err)
		}
		s.Do(NewRequest(id, wire.AppendRequest(nil, wire.VerbKeyNotify, "k")))
		reading.Go(func() {
			for range writers * writes {
				p, err := packets.ReadPacket(conn)
				if err != nil {
					t.Error(err)
					return
				}
				content := p.Content.(*packets.Publish)
				heard[i] = append(heard[i], fmt.Sprint(content.Properties.User)+string(content.Payload[len(content.Payload)-10:]))
				if _, err := conn.Write([]byte{0x40, 2, byte(content.PacketID >> 8), byte(content.PacketID)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for j := range writes {
				if _, err := s.Set("k", strings.Repeat("v", 100_000)+fmt.Sprintf("%04d%04d", i, j)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	paused, written := 0, make(chan struct{})
	go func() {
		writing.Wait()
		close(written)
	}()
	for open := true; open; {
		s.broker.Lock()
		if s.notifying {
			paused++
		}
		s.broker.Unlock()
		select {
		case <-written:
			open = false
		default:
		}
	}
	reading.Wait()
	if paused == 0 {
		t.Error("no other client could use the broker while notifications were sent")
	}
	for i := range heard {
		if !slices.Equal(heard[i], heard[0]) {
			t.Fatalf("two watchers heard\n%q\n%q", heard[0], heard[i])
		}
	}
}

// TestNotifyBesidePipelines: a Redis client with a long pipeline waits while the notifications of a change
// are sent in steps, and does not block them.
func TestNotifyBesidePipelines(t *testing.T) {
	t.Parallel()
	const watchers, writes, pipeline = 100, 10, 30
	s := Start(t, Options{Redis: "127.0.0.1:0"})
	for i := range watchers {
		id := fmt.Sprint("w", i)
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		connect := packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: id, CleanStart: true, Properties: &packets.Properties{}}
		if _, err := connect.WriteTo(conn); err != nil {
			t.Fatal(err)
		}
		if _, err := packets.ReadPacket(conn); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		s.Do(NewRequest(id, wire.AppendRequest(nil, wire.VerbKeyNotify, "k")))
	}
	var all sync.WaitGroup
	for range 3 {
		c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
		all.Go(func() {
			for range writes {
				if _, err := io.WriteString(c.Conn, strings.Repeat("SET k "+strings.Repeat("v", 100)+"\r\n", pipeline)); err != nil {
					t.Error(err)
				}
				for range pipeline {
					if reply, err := c.Frame(); err != nil || string(reply) != "+OK\r\n" {
						t.Errorf("%q, %v", reply, err)
						return
					}
				}
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for range writes {
				if _, err := s.Set("k", "v"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
