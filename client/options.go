package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/sscli/sscli/client/wire"
)

// DefaultTimeout is how long a request may take when neither its context nor
// the Options say otherwise. The SDKs use the same.
const DefaultTimeout = 10 * time.Second

// Options say how to reach the store. The zero value of every field but Address
// is the ordinary case.
type Options struct {
	Address string      // host:port of the broker
	TLS     *tls.Config // nil = plain text

	// WebSocket is the path of a WebSocket at Address, such as "/mqtt"; empty = none.
	WebSocket string

	// Proxy is how to reach Address: a socks5, socks5h, http or https URL, with the user
	// and password that the proxy asks for; nil = directly. The environment is not used.
	Proxy    *url.URL
	ProxyTLS *tls.Config // for an https proxy; nil = the system's authorities

	// Dial connects to Address in place of TCP; nil = TCP. It is not used with Proxy.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	Username string
	Password []byte // nil = none

	// ReadPassword is called for every connection in place of Password, so that a
	// password may change meanwhile.
	ReadPassword func() ([]byte, error)

	// TokenFile holds a Kubernetes service-account token, in place of user name and
	// password. It is read for every connection, and while one lasts each TokenPoll,
	// 0 = DefaultTokenPoll: a new token is shown to the broker then, and at the latest
	// when 80 % of the old one's life are over.
	TokenFile string
	TokenPoll time.Duration

	// ClientID must be unique: the broker disconnects whoever had it before.
	// Empty means a new random one.
	ClientID string

	// ResponseTopic is where replies are asked for; empty means
	// wire.ResponseTopic of the client id.
	ResponseTopic string

	// NoPipelining sends no packet before the broker has answered the last: CONNECT,
	// SUBSCRIBE, and then requests. A broker that closes the connection without a word
	// because more came with CONNECT is asked again in that way by itself.
	NoPipelining bool

	HighPriority bool          // ask to pass when the broker pushes back (protocol.md 1.5)
	Timeout      time.Duration // where a context has no deadline; 0 = DefaultTimeout
	KeepAlive    time.Duration // whole seconds; 0 = mqtt.DefaultKeepAlive

	// Trace gets every packet. It is called by several goroutines and must not
	// block.
	Trace func(TraceEvent)
}

// NewClientID returns a client id that nobody else has.
func NewClientID() string {
	return "sscli-" + strings.ToLower(rand.Text()[:16])
}

func (o Options) withDefaults() (Options, error) {
	if o.ClientID == "" {
		o.ClientID = NewClientID()
	}
	if o.ResponseTopic == "" {
		o.ResponseTopic = wire.ResponseTopic(o.ClientID)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Timeout < 0 {
		return o, invalid("a time-out of %v: want more than 0", o.Timeout)
	}
	if o.KeepAlive != 0 && o.KeepAlive < time.Second {
		return o, invalid("a keep-alive of %v: want at least 1s", o.KeepAlive)
	}
	if o.TokenPoll == 0 {
		o.TokenPoll = DefaultTokenPoll
	}
	if o.TokenPoll < 0 {
		return o, invalid("a token poll of %v: want more than 0", o.TokenPoll)
	}
	if o.TokenFile != "" && (o.Username != "" || o.Password != nil || o.ReadPassword != nil) {
		return o, invalid("a service-account token and a user name or password: want one of them")
	}
	if o.Password != nil && o.ReadPassword != nil {
		return o, invalid("a password and a way to read it: want one of them")
	}
	if o.WebSocket != "" && !strings.HasPrefix(o.WebSocket, "/") {
		return o, invalid("the path of a WebSocket: want one that begins with /")
	}
	if err := wire.CheckClientID(o.ClientID); err != nil {
		return o, &InvalidError{err}
	}
	if err := wire.CheckResponseTopic(o.ResponseTopic); err != nil {
		return o, &InvalidError{err}
	}
	return o, nil
}
