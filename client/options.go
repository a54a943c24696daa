package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/sscli/sscli/client/wire"
)

// DefaultTimeout is the time limit of a request whose context has no deadline, unless
// Options.Timeout says otherwise. The SDKs use the same.
const DefaultTimeout = 10 * time.Second

// DefaultMetricCategory is the group of a client in the broker's metrics, unless
// Options.MetricCategory says otherwise.
const DefaultMetricCategory = "sscli"

// Options describe how to reach the store. Only Address is required.
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

	// ReadPassword returns the password in place of Password. It is called for every
	// connection, so that the password may change.
	ReadPassword func() ([]byte, error)

	// TokenFile is a file with a Kubernetes service-account token, in place of user name
	// and password. It is read for every connection, and then every TokenPoll; 0 =
	// DefaultTokenPoll. The session authenticates again as soon as there is a new token,
	// and at the latest when 80 % of the old one's lifetime are over.
	TokenFile string
	TokenPoll time.Duration

	// ReadToken returns the token in place of a TokenFile. It is called when the file would be
	// read, so it must be quick while its last token is good.
	ReadToken func(context.Context) ([]byte, error)

	// ClientID must be unique: the broker disconnects another client with the same id.
	// Empty = a new random one.
	ClientID string

	// ResponseTopic is the topic for replies; empty = wire.ResponseTopic(ClientID).
	ResponseTopic string

	// NoPipelining sends each of CONNECT, SUBSCRIBE and the first request only after the
	// answer to the previous one. Otherwise a session does so only with a broker that closes
	// the connection when it receives more than CONNECT.
	NoPipelining bool

	// MetricCategory is the group in which the broker's metrics count the client: the user
	// property `metriccategory` of CONNECT (protocol.md 1.3). Empty = DefaultMetricCategory.
	MetricCategory string

	HighPriority bool          // ask the broker to accept requests also under load (protocol.md 1.5)
	Timeout      time.Duration // for contexts without a deadline; 0 = DefaultTimeout
	KeepAlive    time.Duration // whole seconds; 0 = mqtt.DefaultKeepAlive

	// Trace is called for every packet, by several goroutines. It must not block, nor use the
	// session.
	Trace func(TraceEvent)
}

// hasToken reports whether the login is a service-account token.
func (o Options) hasToken() bool { return o.TokenFile != "" || o.ReadToken != nil }

// Token returns the service-account token to log in with now; nil if the login is none. The error
// of a TokenFile is a *[TokenError].
func (o Options) Token(ctx context.Context) ([]byte, error) {
	switch {
	case o.ReadToken != nil:
		return o.ReadToken(ctx)
	case o.TokenFile != "":
		return ReadToken(o.TokenFile)
	default:
		return nil, nil
	}
}

// NewClientID returns a random client id.
func NewClientID() string {
	return "sscli-" + strings.ToLower(rand.Text()[:16])
}

func (o Options) withDefaults() (Options, error) {
	o.ClientID = cmp.Or(o.ClientID, NewClientID())
	o.ResponseTopic = cmp.Or(o.ResponseTopic, wire.ResponseTopic(o.ClientID))
	o.MetricCategory = cmp.Or(o.MetricCategory, DefaultMetricCategory)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.TokenPoll = cmp.Or(o.TokenPoll, DefaultTokenPoll)
	switch {
	case o.Timeout < 0:
		return o, invalid("the timeout %v must be greater than 0", o.Timeout)
	case o.KeepAlive != 0 && o.KeepAlive < time.Second:
		return o, invalid("the keep-alive %v must be at least 1s", o.KeepAlive)
	case o.TokenPoll < 0:
		return o, invalid("the token poll interval %v must be greater than 0", o.TokenPoll)
	case o.hasToken() && (o.Username != "" || o.Password != nil || o.ReadPassword != nil):
		return o, invalid("a token cannot be combined with a user name or password")
	case o.TokenFile != "" && o.ReadToken != nil:
		return o, invalid("TokenFile cannot be combined with ReadToken")
	case o.Password != nil && o.ReadPassword != nil:
		return o, invalid("Password cannot be combined with ReadPassword")
	case o.WebSocket != "" && !strings.HasPrefix(o.WebSocket, "/"):
		return o, invalid("the path of a WebSocket must begin with /")
	}
	if err := wire.CheckClientID(o.ClientID); err != nil {
		return o, &InvalidError{err}
	}
	if err := wire.CheckResponseTopic(o.ResponseTopic); err != nil {
		return o, &InvalidError{err}
	}
	if err := wire.CheckMetricCategory(o.MetricCategory); err != nil {
		return o, &InvalidError{err}
	}
	return o, nil
}
