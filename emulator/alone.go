package emulator

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// AttachOptions are the options of [Attach]. Only Address and ClientID are required.
type AttachOptions struct {
	Address   string                                                               // host:port of the broker
	TLS       *tls.Config                                                          // nil = plain text
	WebSocket string                                                               // the path of the WebSocket at Address; "" = no WebSocket
	Proxy     *url.URL                                                             // the proxy to connect through; nil = none
	Dial      func(ctx context.Context, network, address string) (net.Conn, error) // nil = TCP; not used with Proxy
	ClientID  string
	Username  string

	// Password and Token return the password, or the service-account token, for each connection; nil = none.
	Password func() ([]byte, error)
	Token    func(context.Context) ([]byte, error)

	MetricCategory string             // the store's group in the broker's metrics; "" = none
	NoPipelining   bool               // send nothing before CONNACK
	Trace          func(e TraceEvent) // called for each packet, from several goroutines; nil = none

	// The store, as in [Options]. Of the Policy, only the rules for keys apply: the others are the broker's.
	Data     Data
	Skew     time.Duration
	MaxKeys  int
	ScanPage int
	Policy   *Policy
	Variants Variants
	Observe  func(Event)

	// Standby makes the store wait while another store serves, and serve when no store has answered for
	// this long. 0 = the store ends with an *[OtherStoreError].
	Standby time.Duration

	ResponseTopic string        // for replies to the store's own requests; "" = the usual topic of its client id
	Timeout       time.Duration // of each attempt to connect; 0 = 10 s
	Name          string        // how the store introduces itself to other stores; "" = its process and host
	Log           *slog.Logger  // for lost connections and other stores; nil = silent
}

// Format prints the options for package fmt, without the password of Proxy.
func (o AttachOptions) Format(f fmt.State, verb rune) {
	type options AttachOptions
	o.Proxy = mqtt.WithoutPassword(o.Proxy)
	fmt.Fprintf(f, fmt.FormatString(f, verb), options(o))
}

func (o AttachOptions) withDefaults() AttachOptions {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	if o.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "an unknown host"
		}
		o.Name = fmt.Sprintf("process %d on %s", os.Getpid(), host)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// An OtherStoreError means that another state store serves on the broker.
type OtherStoreError struct {
	Name  string    // "" = not known: it is not an attached store
	Since time.Time // since when it has served without a break, by its own clock; zero = not known
}

func (e *OtherStoreError) Error() string {
	if e.Name == "" {
		return "another state store answers on this broker"
	}
	return fmt.Sprintf("another state store serves on this broker: %s, since %s", e.Name, e.Since.UTC().Format(time.RFC3339))
}

// A SelfTestError means that messages of a topic do not reach the store's own clients, although the broker accepted
// the subscription: usually a right is missing.
type SelfTestError struct{ Topic string }

func (e *SelfTestError) Error() string {
	return fmt.Sprintf("the store's test of itself got no answer: no message arrives on %q", e.Topic)
}

const (
	// propProbe is a user property of the requests by which attached stores look for each other, and of the replies.
	// Other stores ignore it and answer the request, which is a GET. The value is an identity.
	propProbe = "sscli-store"

	probeEvery  = 2 * time.Second
	probeLinger = 100 * time.Millisecond // for a second reply

	// A store answers requests only until its last successful probe is maxUnproven old. A store that starts waits as
	// long for a reply, so a store that was stopped meanwhile knows that it may have been replaced.
	maxUnproven = 5 * time.Second
)

// An identity is the value of propProbe.
type identity struct {
	id    string
	since time.Time // since when the store has served without a break
	name  string
}

func (i identity) String() string {
	return i.id + " " + strconv.FormatInt(i.since.UnixMicro(), 10) + " " + i.name
}

// parseIdentity parses the value of propProbe. The zero identity is a store that has none.
func parseIdentity(text string) identity {
	id, rest, _ := strings.Cut(text, " ")
	since, name, _ := strings.Cut(rest, " ")
	micros, err := strconv.ParseInt(since, 10, 64)
	if err != nil || len(name) > 200 {
		return identity{}
	}
	return identity{id, time.UnixMicro(micros), name}
}

// before reports whether i stays if two stores find each other. The one that has served longer stays; i does not if other is
// unknown.
func (i identity) before(other identity) bool {
	if i.since.Equal(other.since) {
		return i.id < other.id
	}
	return other.id != "" && i.since.Before(other.since)
}

// An asker finds out which stores answer, by requests over a connection.
type asker struct {
	a       *Attached
	serving bool // requests reach this store over the connection
	topic   string
	conn    *mqtt.Conn

	mu    sync.Mutex
	id    string        // correlation data of the current request
	heard chan identity // replies to the current request
	asked bool          // the current request has reached this store
}

// newAsker connects with a client id. If serving is set, it also subscribes to requests.
func (a *Attached) newAsker(ctx context.Context, clientID string, serving bool) (*asker, error) {
	ctx, cancel := context.WithTimeout(ctx, a.more.Timeout)
	defer cancel()
	k := &asker{a: a, serving: serving, topic: cmp.Or(a.more.ResponseTopic, wire.ResponseTopic(clientID))}
	o := a.connection()
	var err error
	if a.more.Password != nil {
		if o.Password, err = a.more.Password(); err != nil {
			return nil, err
		}
	}
	o.ClientID, o.Subscribe, o.OnMessage = clientID, []string{k.topic}, func(m mqtt.Message) { k.receive(m) }
	if serving {
		o.Subscribe = append(o.Subscribe, wire.RequestTopic)
		o.OnMessage = func(m mqtt.Message) {
			if !k.receive(m) {
				a.receive(k, m)
			}
		}
	}
	k.conn, err = mqtt.Dial(ctx, o)
	return k, err
}

// connection returns how to connect to the broker.
func (a *Attached) connection() mqtt.Options {
	o := mqtt.Options{
		Address: a.more.Address, TLS: a.more.TLS, WebSocket: a.more.WebSocket, Proxy: a.more.Proxy, Dial: a.more.Dial,
		Username: a.more.Username, Tap: a.more.Trace, AwaitConnack: a.more.NoPipelining,
	}
	if a.more.MetricCategory != "" {
		o.User = []mqtt.Property{{Name: wire.PropMetricCategory, Value: a.more.MetricCategory}}
	}
	if a.more.Token != nil {
		o.Auth = mqtt.Auth{Method: methodSAT, Data: func() ([]byte, error) { return a.more.Token(context.Background()) }}
	}
	return o
}

// receive handles a reply to the current request. It returns false for another message.
func (k *asker) receive(m mqtt.Message) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.id == "" || string(m.Correlation) != k.id || m.Topic != k.topic {
		return false
	}
	value, _ := m.Property(propProbe)
	select {
	case k.heard <- parseIdentity(value):
	default: // enough is known
	}
	return true
}

// reached notes that a request has reached this store, and reports whether it is the current one.
func (k *asker) reached(correlation []byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	own := k.id != "" && string(correlation) == k.id
	k.asked = k.asked || own
	return own
}

// ask returns nil if no other store answers, or only stores that have to end because this one has served longer.
// Otherwise it returns an *OtherStoreError, a *SelfTestError, or why the request was refused or lost.
func (k *asker) ask(ctx context.Context) error {
	me := k.a.me()
	heard, acked := make(chan identity, 8), make(chan error, 2)
	k.mu.Lock()
	k.id, k.heard, k.asked = rand.Text(), heard, false
	m := mqtt.Message{
		Topic: wire.RequestTopic, ResponseTopic: k.topic, Correlation: []byte(k.id), ContentType: wire.ContentType,
		Payload: wire.AppendRequest(nil, wire.VerbGet, propProbe), Expiry: maxUnproven,
		User: []mqtt.Property{{Name: propProbe, Value: me.String()}},
	}
	k.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, maxUnproven)
	defer cancel()
	if !k.serving { // an echo proves that replies would arrive
		echo := m
		echo.Topic, echo.ResponseTopic = k.topic, ""
		err := k.conn.Publish(limited, echo, func(err error) {
			if err != mqtt.ErrNoSubscribers {
				acked <- err
			}
		})
		if err != nil {
			return err
		}
	}
	if err := k.conn.Publish(limited, m, func(err error) { acked <- err }); err != nil {
		return err
	}
	own, nobody := false, false
	var lingered <-chan time.Time
	for {
		switch {
		case !own:
		case nobody:
			return nil
		case k.serving && lingered == nil:
			lingered = time.After(probeLinger)
		}
		select {
		case who := <-heard:
			if who.id == me.id {
				own = true
			} else if !k.serving || !me.before(who) {
				return &OtherStoreError{who.name, who.since}
			} else if k.a.isNews(who) {
				k.a.more.Log.Warn("another state store serves on this broker; this one has served longer and stays, the other has to end", "other", who.name)
			}
		case err := <-acked:
			if nobody = nobody || err == mqtt.ErrNoSubscribers; err != nil && !nobody {
				return err
			}
		case <-lingered:
			return nil
		case <-k.conn.Done():
			return k.conn.Err()
		case <-limited.Done():
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case own:
				return nil
			case k.serving && !k.hasAsked():
				return &SelfTestError{wire.RequestTopic}
			}
			return &SelfTestError{k.topic}
		}
	}
}

func (k *asker) hasAsked() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

// look returns nil if no store answers on the broker, and an error as ask does. It asks with a client id of its
// own, since the store's own id would disconnect a store that has it.
func (a *Attached) look(ctx context.Context) error {
	if a.lookout == nil {
		k, err := a.newAsker(ctx, a.more.ClientID+"-"+strings.ToLower(rand.Text()[:8]), false)
		if err != nil {
			return err
		}
		a.lookout = k
	}
	err := a.lookout.ask(ctx)
	if err != nil && !isOther(err) {
		a.endLook()
	}
	return err
}

func (a *Attached) endLook() {
	if a.lookout != nil {
		_ = a.lookout.conn.Close() // whatever is wrong with it, it is not needed
		a.lookout = nil
	}
}

func isOther(err error) bool {
	_, ok := errors.AsType[*OtherStoreError](err)
	return ok
}

func (a *Attached) me() identity {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.identity
}

// isNews reports whether another store was not reported yet.
func (a *Attached) isNews(other identity) bool {
	const most = 100 // anybody can invent stores
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known[other.id] || len(a.known) == most {
		return false
	}
	a.known[other.id] = true
	return true
}

// isProven reports whether this store was the only one a short time ago. It requires a.mu.
func (a *Attached) isProven() bool {
	return !a.proven.IsZero() && time.Since(a.proven) < maxUnproven
}

// guard looks for other stores until it finds one that has served longer, or the connection ends. The first time,
// and after each break, requests wait until it has found none.
func (a *Attached) guard(ctx context.Context, k *asker) error {
	lost := 0
	for {
		began := time.Now()
		err := k.ask(ctx)
		_, silent := errors.AsType[*SelfTestError](err)
		switch {
		case err == nil:
			a.prove(k, began)
			lost = 0
		case silent && a.isReady():
			if lost++; lost == 2 { // the first may be due to a pause of this process
				a.more.Log.Warn("requests of the store to itself are not answered", "error", err)
			}
		default:
			return err
		}
		for pause := time.After(probeEvery - time.Since(began)); pause != nil; {
			select {
			case who := <-a.met:
				if a.isNews(who) {
					a.more.Log.Warn("another state store came to this broker; this one serves and stays", "other", who.name)
				}
			case <-pause:
				pause = nil
			case <-k.conn.Done():
				return k.conn.Err()
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		a.mu.Lock()
		if !a.proven.IsZero() && !a.isProven() { // a break: another store may have started
			a.identity.since, a.proven = time.Now(), time.Time{}
		}
		a.mu.Unlock()
	}
}

// prove notes that no other store answered a request that was sent at the given time, and answers the requests that
// waited for it.
func (a *Attached) prove(k *asker, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proven = at; !a.isProven() {
		return
	}
	held := a.held
	a.held, a.heldBytes = nil, 0
	for _, h := range held {
		if h.message.Expiry == 0 || time.Since(h.at) < h.message.Expiry {
			a.answer(k, h.message)
		}
	}
	a.readyOnce.Do(func() { close(a.ready) })
}

// A held is a request that waits until it is known that no other store answers it.
type held struct {
	message mqtt.Message
	at      time.Time // when it arrived
}

// Ready returns a channel that is closed when the store answers requests for the first time: a request to itself came
// back through the broker, and no other store answered it.
func (a *Attached) Ready() <-chan struct{} { return a.ready }

func (a *Attached) isReady() bool {
	select {
	case <-a.ready:
		return true
	default:
		return false
	}
}
