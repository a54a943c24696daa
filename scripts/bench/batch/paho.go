//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
)

// pahoSets does what batch does by way of paho's client: it sets the keys of the
// lines of standard input with so many under way, and prints the replies.
func pahoSets(ctx context.Context, address string, inflight int) error {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	id := client.NewClientID()
	room := make(chan struct{}, inflight)
	out := bufio.NewWriter(os.Stdout)
	c := paho.NewClient(paho.ClientConfig{
		Conn: nc,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){
			func(r paho.PublishReceived) (bool, error) {
				if _, err := wire.ParseReply(r.Packet.Payload); err != nil {
					return true, err
				}
				fmt.Fprintf(out, "OK\t%s\n", r.Packet.Properties.User.Get(wire.PropTimestamp))
				<-room
				return true, nil
			},
		},
	})
	if _, err := c.Connect(ctx, &paho.Connect{ClientID: id, CleanStart: true, KeepAlive: 60}); err != nil {
		return err
	}
	if _, err = c.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: wire.ResponseTopic(id), QoS: 1}}}); err != nil {
		return err
	}
	clock := wire.NewClock("paho", time.Now)
	expiry := uint32(10)
	n := 0
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		ts, err := clock.Tick()
		if err != nil {
			return err
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		if _, err := c.PublishWithOptions(ctx, &paho.Publish{
			QoS: 1, Topic: wire.RequestTopic, Payload: wire.AppendRequest(nil, wire.VerbSet, words[1], words[2]),
			Properties: &paho.PublishProperties{
				CorrelationData: fmt.Appendf(nil, "%016x", n), ResponseTopic: wire.ResponseTopic(id), ContentType: wire.ContentType, MessageExpiry: &expiry,
				User: paho.UserProperties{
					{Key: wire.PropTimestamp, Value: ts.String()}, {Key: wire.PropSource, Value: id},
					{Key: wire.PropProtocol, Value: wire.ProtocolVersion}, {Key: wire.PropPartition, Value: id},
				},
			},
		}, paho.PublishOptions{Method: paho.PublishMethod_AsyncSend}); err != nil {
			return err
		}
	}
	for range inflight { // until all are answered
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := c.Disconnect(&paho.Disconnect{}); err != nil {
		return err
	}
	return out.Flush()
}
