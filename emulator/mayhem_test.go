package emulator_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
)

// TestMayhem: connections that share a few client ids connect, take each other over, send requests, don't
// read, and break. Afterwards nothing hangs, nothing is left over, and the store still answers.
func TestMayhem(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{Limits: emulator.Limits{Outbox: 50}})
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for round := range 25 {
				rough(t, s, fmt.Sprintf("c%d", (worker+round)%2), round)
				if round%10 == 9 {
					s.DropAll()
				}
				s.FastForward(time.Millisecond)
			}
		})
	}
	wg.Wait()
	await.State(t, s, func(st emulator.State) bool { return st.Connections == 0 && st.Registrations == 0 })
	c := connect(t, s, "after")
	c.do("GET absent", "$-1")
}

// rough runs one connection and ignores its errors.
func rough(t *testing.T, s *emulator.Server, id string, round int) {
	conn, err := net.DialTimeout("tcp", s.Addr().String(), patience)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	c := over(t, conn, id)
	connect := &packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: id, CleanStart: round%3 == 0, Properties: &packets.Properties{}}
	if round%2 == 0 {
		remember(connect)
	}
	out := []io.WriterTo{
		&packets.Subscribe{PacketID: c.PacketID(), Properties: &packets.Properties{}, Subscriptions: []packets.SubOptions{{Topic: c.responseTopic(), QoS: 1}}},
	}
	for i := range 5 {
		out = append(out, c.publication("KEYNOTIFY", "k"), c.publication("SET", "k", fmt.Sprint(i), "PX", "1"))
	}
	if round%5 == 0 {
		out = append(out, &packets.Disconnect{Properties: &packets.Properties{SessionExpiryInterval: pointer(uint32(round % 2))}})
	}
	if _, err := connect.WriteTo(conn); err != nil {
		return
	}
	for _, p := range out {
		if _, err := p.WriteTo(conn); err != nil {
			return
		}
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return
	}
	for range round % 7 {
		if _, err := packets.ReadPacket(conn); err != nil {
			return
		}
	}
}
