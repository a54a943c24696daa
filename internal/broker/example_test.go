package broker_test

import (
	"bytes"
	"context"
	"fmt"
	"net"

	"github.com/sscli/sscli/internal/broker"
	"github.com/sscli/sscli/internal/mqtt"
)

// A broker that replies to the messages of one topic with their text in capital letters.
func Example() {
	var b *broker.Broker
	b = broker.New(broker.Options{
		Topic: "shout",
		Handle: func(c *broker.Client, p *broker.Publish) byte {
			properties := broker.AppendCorrelation(nil, p.Correlation)
			b.Publish(p.ResponseTopic, broker.Message{QoS: 1, Properties: properties, Payload: bytes.ToUpper(p.Payload)})
			return broker.Success
		},
	})
	defer b.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	b.Serve(ln)

	answers := make(chan mqtt.Message, 1)
	ctx := context.Background()
	conn, err := mqtt.Dial(ctx, mqtt.Options{
		Address: ln.Addr().String(), ClientID: "example",
		Subscribe: []string{"answers"}, OnMessage: func(m mqtt.Message) { answers <- m },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	m := mqtt.Message{Topic: "shout", Payload: []byte("hello"), ResponseTopic: "answers", Correlation: []byte("1")}
	if err := conn.Publish(ctx, m, func(error) {}); err != nil {
		fmt.Println(err)
		return
	}
	answer := <-answers
	fmt.Printf("%s %s\n", answer.Correlation, answer.Payload)
	// Output: 1 HELLO
}
