package client_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
)

// broker returns an emulator in place of the broker of Azure IoT Operations.
func broker() *emulator.Server {
	store, err := emulator.New(emulator.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return store
}

func ExampleDial() {
	store := broker()
	defer store.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	s, err := client.Dial(ctx, client.Options{Address: store.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	set, err := s.Set(ctx, "setpoint", []byte("21.5"))
	if err != nil {
		log.Fatal(err)
	}
	get, err := s.Get(ctx, "setpoint")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%t %s %t\n", set.Applied, get.Value, get.Found)
	fmt.Println(get.Version.Equal(set.Version))
	// Output:
	// true 21.5 true
	// true
}

func ExampleNew() {
	store := broker()
	defer store.Close()

	s, err := client.New(client.Options{Address: store.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	r, err := s.Get(context.Background(), "setpoint") // sent together with CONNECT
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Found) // a missing key is not an error
	// Output: false
}

func ExampleSession_Pipeline() {
	store := broker()
	defer store.Close()
	ctx := context.Background()
	s, err := client.Dial(ctx, client.Options{Address: store.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	commands := slices.Values([]client.Command{
		client.Set("a", []byte("1")),
		client.Set("b", []byte("2")),
		client.Get("a"), // waits for the request with the same key
		client.Del("c"),
	})
	for f := range s.Pipeline(64).Results(ctx, commands) { // in the order in which the replies come
		result, err := f.Wait(ctx)
		if err != nil {
			log.Fatal(err)
		}
		switch r := result.(type) {
		case client.GetResult:
			fmt.Printf("get %s: %s\n", f.Command().Key(), r.Value)
		case client.SetResult:
			fmt.Printf("set %s: %t\n", f.Command().Key(), r.Applied)
		case client.DelResult:
			fmt.Printf("del %s: %t\n", f.Command().Key(), r.Deleted)
		}
	}
	// Unordered output:
	// set a: true
	// set b: true
	// get a: 1
	// del c: false
}

// The version of a lock is the fencing token for the writes that the lock protects.
func ExampleWriteOptions() {
	store := broker()
	defer store.Close()
	ctx := context.Background()
	s, err := client.Dial(ctx, client.Options{Address: store.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	lock, err := s.Set(ctx, "lock", []byte("me"), client.SetOptions{Condition: client.NEX, TTL: 10 * time.Second})
	if err != nil || !lock.Applied {
		log.Fatal("somebody else has it: ", err)
	}
	token := client.WriteOptions{Fence: lock.Version}
	if _, err := s.Set(ctx, "setpoint", []byte("21.5"), client.SetOptions{WriteOptions: token}); err != nil {
		log.Fatal(err)
	}
	_, err = s.Set(ctx, "setpoint", []byte("99"))
	fmt.Println(errors.Is(err, client.ErrFenced))
	// Output: true
}

// In a pod: a service-account token, which Kubernetes replaces from time to time. From
// elsewhere: a password file, WebSockets, a proxy.
func ExampleOptions() {
	pod := client.Options{
		Address:   "aio-broker:18883",
		TLS:       &tls.Config{MinVersion: tls.VersionTLS12},
		TokenFile: "/var/run/secrets/tokens/broker-sat",
	}
	elsewhere := client.Options{
		Address:   "broker.example:443",
		TLS:       &tls.Config{MinVersion: tls.VersionTLS12},
		WebSocket: "/mqtt",
		Proxy:     &url.URL{Scheme: "http", Host: "proxy.example:3128"},
		Username:  "ann",
		Password: func() ([]byte, error) {
			line, err := os.ReadFile("/run/secrets/broker")
			return bytes.TrimRight(line, "\r\n"), err
		},
	}
	for _, o := range []client.Options{pod, elsewhere} {
		_, err := client.Dial(context.Background(), o)
		if expired, ok := errors.AsType[*client.TokenError](err); ok && !expired.Expiry.IsZero() {
			log.Print("kubectl create token: the old one expired at ", expired.Expiry)
		}
	}
}

// A watch reports the initial state of a key, then each change.
func ExampleSession_Watch() {
	store := broker()
	defer store.Close()
	ctx := context.Background()
	s, err := client.Dial(ctx, client.Options{Address: store.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	w, err := s.Watch(ctx, []string{"setpoint"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Set(ctx, "setpoint", []byte("21.5")); err != nil {
		log.Fatal(err)
	}
	if _, err := s.Del(ctx, "setpoint"); err != nil {
		log.Fatal(err)
	}
	for e, err := range w.Events(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %s %q\n", e.Kind, e.Key, e.Value)
		if e.Kind == client.EventDelete {
			break
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// initial setpoint ""
	// set setpoint "21.5"
	// delete setpoint ""
}

// The work gets a context that ends when the lock is lost, and sends the lock's token with each write.
func ExampleSession_Lock() {
	store := broker()
	defer store.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := client.Dial(ctx, client.Options{Address: store.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	l, err := s.Lock(ctx, "deploy", client.LockOptions{TTL: 30 * time.Second, Wait: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	set, err := l.Set(ctx, "deployed", []byte("1.2.3"))
	if lost := context.Cause(l.Context()); lost != nil {
		fmt.Println(lost) // stop at once; l.Lease().Until is the last moment
	}
	// Release in any case, but not with l.Context(): Release ends it.
	if err := errors.Join(err, l.Release(ctx)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(set.Applied)
	_, held := store.Get("deploy")
	fmt.Println(held)
	// Output:
	// true
	// false
}

// A lock that outlives the process that acquires it: whoever knows the holder renews and releases it.
func ExampleSession_AcquireLock() {
	store := broker()
	defer store.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := client.Dial(ctx, client.Options{Address: store.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	o := client.LockOptions{Holder: []byte("night shift"), TTL: 8 * time.Hour, Try: true}
	lease, err := s.AcquireLock(ctx, "furnace", o)
	if err != nil {
		log.Fatal(err)
	}
	_, err = s.AcquireLock(ctx, "furnace", client.LockOptions{Holder: []byte("day shift"), Try: true})
	if busy, ok := errors.AsType[*client.LockBusyError](err); ok {
		fmt.Printf("held by %s\n", busy.Status.Holder)
	}
	renewed, err := s.RenewLock(ctx, "furnace", o)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(renewed.Token.Compare(lease.Token) > 0)
	if err := s.ReleaseLock(ctx, "furnace", o.Holder); err != nil {
		log.Fatal(err)
	}
	// Output:
	// held by night shift
	// true
}

// A write whose answer was lost is not sent again: ReadBack finds out whether it was applied.
func ExampleSession_ReadBack() {
	store := broker()
	defer store.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := client.Dial(ctx, client.Options{Address: store.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	store.Intercept(func(r emulator.Request) emulator.Action {
		return emulator.Action{CutAfter: r.Verb() == "SET"} // the connection breaks before the reply
	})

	limited, cancelSet := context.WithTimeout(ctx, 5*time.Second) // the write expires then
	defer cancelSet()
	_, err = s.Set(limited, "setpoint", []byte("21.5"))
	lost, ok := errors.AsType[*client.LostReplyError](err)
	if !ok {
		log.Fatal(err)
	}
	r, err := s.ReadBack(ctx, lost)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Outcome)
	// Output: fulfilled
}

// An election: each process that runs this is the leader as long as it holds the lock.
func ExampleSession_WithLock() {
	store := broker()
	defer store.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := client.New(client.Options{Address: store.Addr().String(), RetryFor: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	lead := func(ctx context.Context, l *client.Lock) error { // ctx ends when the lock is lost
		if _, err := l.Set(ctx, "leader", []byte(s.ClientID())); err != nil {
			return err // ErrFenced if somebody else leads already
		}
		fmt.Println("leading")
		stop() // a leader would work until ctx ends
		<-ctx.Done()
		return nil
	}
	for ctx.Err() == nil {
		err := s.WithLock(ctx, "election", lead)
		if err != nil && ctx.Err() == nil {
			log.Print(err)              // such as ErrLockLost
			time.Sleep(5 * time.Second) // be a candidate again
		}
	}
	_, held := store.Get("election")
	fmt.Println(held)
	// Output:
	// leading
	// false
}

func ExampleSession_Follow() {
	store := broker()
	defer store.Close()
	ctx := context.Background()
	s, err := client.Dial(ctx, client.Options{Address: store.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	for now, err := range s.Follow(ctx, "setpoint") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%t %q\n", now.Found, now.Value)
		if now.Found {
			break
		}
		if _, err := s.Set(ctx, "setpoint", []byte("21.5")); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// false ""
	// true "21.5"
}

func ExampleSession_Keys() {
	store := broker()
	defer store.Close()
	ctx := context.Background()
	s, err := client.Dial(ctx, client.Options{Address: store.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	for _, key := range []string{"line1/speed", "line2/speed", "shift"} {
		if _, err := s.Set(ctx, key, []byte("1")); err != nil {
			log.Fatal(err)
		}
	}
	for key, err := range s.Keys(ctx, "line*") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(key)
	}
	// Unordered output:
	// line1/speed
	// line2/speed
}

func ExampleAs() {
	store := broker()
	defer store.Close()
	ctx := context.Background()
	s, err := client.Dial(ctx, client.Options{Address: store.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	get, err := client.As[client.GetResult](s.Do(ctx, client.Get("setpoint")))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(get.Found)
	// Output: false
}
