package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	ours "github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
)

// The reply to the first SET is lost: the store has the value, and the client does not know.
func ExampleServer_Intercept() {
	store, err := emulator.New(emulator.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	lost := 0
	store.Intercept(func(r emulator.Request) emulator.Action {
		if r.Verb() != "SET" || lost > 0 {
			return emulator.Action{}
		}
		lost++
		return emulator.Action{CutAfter: true}
	})

	ctx := context.Background()
	s, err := ours.Dial(ctx, ours.Options{Address: store.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	_, err = s.Set(ctx, "setpoint", []byte("21.5"))
	fmt.Println(ours.Class(err) == ours.ClassUnknown)
	entry, _ := store.Get("setpoint")
	fmt.Printf("%s\n", entry.Value)
	// Output:
	// true
	// 21.5
}

// A key expires without waiting.
func ExampleServer_FastForward() {
	store, err := emulator.New(emulator.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	ctx := context.Background()
	s, err := ours.Dial(ctx, ours.Options{Address: store.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Set(ctx, "lease", []byte("me"), ours.SetOptions{TTL: 30 * time.Second}); err != nil {
		log.Fatal(err)
	}
	store.FastForward(29 * time.Second)
	_, held := store.Get("lease")
	store.FastForward(time.Second)
	_, holds := store.Get("lease")
	fmt.Println(held, holds)
	// Output: true false
}

// A BrokerAuthorization decides what a client may do, once clients log in.
func ExamplePolicy() {
	rules, err := emulator.ParsePolicy("authz.yaml", []byte(`
- principals: {usernames: [reader]}
  brokerResources: [{method: Connect}, {method: Publish, topics: ["#"]}, {method: Subscribe, topics: ["#"]}]
  stateStoreResources: [{method: Read, keyType: Pattern, keys: ["setpoint*"]}]
`))
	if err != nil {
		log.Fatal(err)
	}
	store, err := emulator.New(emulator.Options{Policy: rules, CheckLogin: emulator.Passwords(map[string]string{"reader": "secret"})})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	ctx := context.Background()
	s, err := ours.Dial(ctx, ours.Options{Address: store.Addr().String(), Username: "reader", Password: ours.Secret("secret")})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	_, err = s.Get(ctx, "setpoint")
	fmt.Println("read:", err)
	_, err = s.Set(ctx, "setpoint", []byte("21.5"))
	fmt.Println("write:", errors.Is(err, ours.ErrNotAuthorized))
	// Output:
	// read: <nil>
	// write: true
}
