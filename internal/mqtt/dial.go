package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"
)

// Options are the options of a connection. Only Address and ClientID are required.
type Options struct {
	Address  string      // host:port
	TLS      *tls.Config // nil = plain text; an empty ServerName becomes the host of Address
	ClientID string

	// WebSocket is the path of a WebSocket at Address, such as "/mqtt". It may include a
	// query. Empty = do not use a WebSocket.
	WebSocket string

	// Proxy is the URL of a proxy that connects to Address; nil = no proxy. The scheme is
	// socks5, socks5h, http or https (the latter two use the HTTP method CONNECT). The URL may
	// contain a user name and password for the proxy. The proxy always looks up the broker's name.
	// Environment variables such as HTTPS_PROXY are ignored.
	Proxy    *url.URL
	ProxyTLS *tls.Config // for an https proxy; nil = trust the system's certificate authorities

	// Dial makes the network connection to Address; nil = dial TCP. It is not called if
	// Proxy is set.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	Username string
	Password []byte // nil = none
	Auth     Auth
	User     []Property // User Properties of CONNECT

	KeepAlive      time.Duration // at least 1 s, truncated to seconds; 0 = DefaultKeepAlive
	MaxPacketSize  uint32        // bytes; announced to the broker and enforced; 0 = MQTT's maximum
	ReceiveMaximum uint16        // announced to the broker; 0 = 65535

	// Subscribe holds the topic filters to subscribe to, with QoS 1. SUBSCRIBE is sent in
	// the same write as CONNECT, but after CONNACK if Auth or AwaitConnack is set.
	Subscribe []string

	// AwaitConnack makes Dial wait for CONNACK before it sends SUBSCRIBE. Some brokers
	// require this, although MQTT 5 lets a client send packets before CONNACK (3.1.4).
	AwaitConnack bool

	// Early, if set, returns a message that Dial sends in the same write as SUBSCRIBE. The
	// broker may drop an answer that is published before the subscription is granted. Dial
	// calls Early right before the write.
	Early func() EarlyMessage

	// OnMessage is called for each message, one at a time, perhaps before Dial returns. The
	// connection reads nothing until OnMessage returns, so OnMessage must not block. OnMessage must
	// not call Close, which waits for OnMessage to return.
	OnMessage func(Message)

	// OnPublication, if set, is called in place of OnMessage, without copying the message out
	// of the read buffer.
	OnPublication func(*Publication)

	// OnDrained is called before each read from the network, when all messages of the previous read
	// have been passed on, and once when reading ends. If OnMessage passes messages to another
	// goroutine, OnDrained can wake that goroutine once for all of them. Like OnMessage, OnDrained
	// must not block and must not call Close. If OnDrained returns true, nothing more is expected from
	// the broker: up to 32 PUBACKs then wait for the next packet that is sent, such as DISCONNECT, which
	// saves a write.
	OnDrained func() (idle bool)

	// Tap is called for every packet sent or received. Several goroutines call it, some
	// while they hold locks, so Tap must not block and must not use the connection.
	Tap func(Event)

	inFlight *atomic.Int64 // shared with the Conn that Dial makes
}

// An EarlyMessage is published before the broker has granted the subscription.
type EarlyMessage struct {
	Message
	// Acked is called like the acked function of [Conn.Publish]. Its argument may also be a
	// *[TooLargeError], if CONNACK announces a smaller Maximum Packet Size, or the reason why the
	// connection ended, if Dial fails before the PUBACK.
	Acked func(error)
	// Answered tells Dial, when closed, to stop waiting for the SUBACK. Nil = wait.
	Answered <-chan struct{}
}

// DefaultKeepAlive is the keep-alive interval of the Azure SDKs (protocol.md 1.3).
const DefaultKeepAlive = 60 * time.Second

// A Stage is a step of Dial.
type Stage string

// The stages of Dial, in order.
const (
	StageLookup    Stage = "look up"
	StageTCP       Stage = "connect to"
	StageProxy     Stage = "connect by proxy to" // replaces StageLookup and StageTCP when a proxy is used
	StageTLS       Stage = "TLS handshake with"
	StageWebSocket Stage = "WebSocket upgrade at"
	StageConnect   Stage = "MQTT CONNECT to"
	StageSubscribe Stage = "MQTT SUBSCRIBE at"
)

// A DialError says at which stage Dial failed. It wraps the cause: a
// *net.OpError, a *ProxyError, a TLS error, a *ClientCertificateError, a
// *ReasonError, ErrAuthLater, the error of Options.Auth.Data, context.DeadlineExceeded, …
type DialError struct {
	Stage   Stage
	Address string
	Err     error
}

func (e *DialError) Error() string {
	return fmt.Sprintf("%s %s: %v", e.Stage, e.Address, e.Err)
}

func (e *DialError) Unwrap() error { return e.Err }

// Dial connects, logs in and subscribes. Once Dial has returned, ctx no longer affects the
// connection. The error is a *[DialError].
func Dial(ctx context.Context, o Options) (*Conn, error) {
	if err := o.check(); err != nil {
		return nil, &DialError{StageConnect, o.Address, err}
	}
	data, err := o.Auth.data()
	if err != nil {
		return nil, &DialError{StageConnect, o.Address, err}
	}
	var certificate certificateRequest
	o.inFlight = new(atomic.Int64)
	nc, err := dialNet(ctx, o, &certificate)
	if err != nil {
		return nil, err
	}
	c := start(nc, o)
	stage, err := c.open(ctx, data)
	if err != nil {
		c.fail(ErrClosed)
		c.wg.Wait()
		if stage == StageConnect {
			err = certificate.classify(err)
		}
		return nil, &DialError{stage, o.Address, err}
	}
	if c.limits.KeepAlive > 0 {
		c.run(c.keepAliveLoop)
	}
	return c, nil
}

func (o *Options) keepAlive() time.Duration {
	if o.KeepAlive == 0 {
		return DefaultKeepAlive
	}
	return min(o.KeepAlive.Truncate(time.Second), math.MaxUint16*time.Second)
}

// check rejects values that do not fit into CONNECT; paho's encoder would silently truncate them.
func (o *Options) check() error {
	if o.KeepAlive != 0 && o.KeepAlive < time.Second {
		return fmt.Errorf("keep-alive %v: expected at least 1s", o.KeepAlive)
	}
	if err := checkLength("client id", len(o.ClientID)); err != nil {
		return err
	}
	if err := checkLength("user name", len(o.Username)); err != nil {
		return err
	}
	for _, p := range o.User {
		if err := checkLength("user property of CONNECT", max(len(p.Name), len(p.Value))); err != nil {
			return err
		}
	}
	return checkLength("password", len(o.Password))
}

// dialNet makes the network connection, including TLS and the WebSocket if o asks for them.
func dialNet(ctx context.Context, o Options, certificate *certificateRequest) (net.Conn, error) {
	dial := dialTCP
	if o.Proxy != nil {
		dial = dialProxy
	}
	nc, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.TLS != nil {
		tc, err := handshake(ctx, nc, o, certificate)
		if err != nil {
			nc.Close() // its error would add nothing to err
			return nil, &DialError{StageTLS, o.Address, certificate.classify(cause(ctx, brokerClosed(err)))}
		}
		nc = tc
	}
	if o.WebSocket != "" {
		ws, err := upgrade(ctx, nc, o)
		if err != nil {
			nc.Close() // its error would add nothing to err
			return nil, &DialError{StageWebSocket, o.Address, certificate.classify(cause(ctx, brokerClosed(err)))}
		}
		nc = ws
	}
	return nc, nil
}

func (o *Options) dial(ctx context.Context, address string) (net.Conn, error) {
	if o.Dial != nil {
		return o.Dial(ctx, "tcp", address)
	}
	return quickDialer{inFlight: o.inFlight}.DialContext(ctx, "tcp", address)
}

func dialTCP(ctx context.Context, o Options) (net.Conn, error) {
	nc, err := o.dial(ctx, o.Address)
	if err != nil {
		stage := StageTCP
		if _, ok := errors.AsType[*net.DNSError](err); ok {
			stage = StageLookup
		}
		if o.Dial == nil || !errors.Is(err, context.Cause(ctx)) { // otherwise o.Dial's error says more
			err = cause(ctx, err)
		}
		return nil, &DialError{stage, o.Address, err}
	}
	return nc, nil
}

func handshake(ctx context.Context, nc net.Conn, o Options, certificate *certificateRequest) (net.Conn, error) {
	config := certificate.observe(o.TLS)
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(o.Address)
		if err != nil {
			return nil, err
		}
		if ip, err := netip.ParseAddr(host); err == nil {
			host = ip.WithZone("").String() // the zone is a name of this machine: no certificate contains it
		}
		config.ServerName = host
	}
	tc := tls.Client(nc, config)
	return tc, tc.HandshakeContext(ctx)
}

// cause returns why ctx ended, or err if ctx has not ended.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// A dialer that knows the deadline of ctx may time out a moment before ctx ends.
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		if end, set := ctx.Deadline(); set {
			if time.Until(end) < time.Second {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return context.DeadlineExceeded
		}
	}
	return err
}

// ErrBrokerClosed means that the broker closed the connection without a DISCONNECT.
var ErrBrokerClosed = errors.New("the broker closed the connection")

func brokerClosed(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrBrokerClosed
	}
	return err
}
