package mqtt_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
)

func Example() {
	broker, err := emulator.New(emulator.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	messages := make(chan mqtt.Message, 1)
	conn, err := mqtt.Dial(ctx, mqtt.Options{
		Address:   broker.Addr().String(),
		ClientID:  "example-1",
		Subscribe: []string{"rooms/+"},
		OnMessage: func(m mqtt.Message) { messages <- m },
	})
	if err != nil {
		log.Fatal(err) // for example: connect to 127.0.0.1:1883: …: connection refused
	}
	defer conn.Close()

	acked := make(chan error, 1)
	if err := conn.Publish(ctx, mqtt.Message{Topic: "rooms/kitchen", Payload: []byte("21.5")}, func(err error) { acked <- err }); err != nil {
		log.Fatal(err)
	}
	if err := <-acked; err != nil {
		log.Fatal(err) // for example: PUBACK 0x87 not authorized for "rooms/kitchen"
	}
	m := <-messages
	fmt.Printf("%s: %s\n", m.Topic, m.Payload)
	// Output: rooms/kitchen: 21.5
}

// A refusal is a ReasonError anywhere in the error chain.
func ExampleReasonCode() {
	err := fmt.Errorf("set %q: %w", "k", &mqtt.ReasonError{Packet: "PUBACK", Code: mqtt.ReasonQuotaExceeded, Topic: "t"})
	code, ok := mqtt.ReasonCode(err)
	fmt.Println(err)
	fmt.Println(code == mqtt.ReasonQuotaExceeded, ok)
	// Output:
	// set "k": PUBACK 0x97 quota exceeded for "t"
	// true true
}
