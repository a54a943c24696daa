package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// DefaultTimeout is the time limit of a request whose context has no deadline, unless
// Options.Timeout is set. Microsoft's SDKs use the same limit.
const DefaultTimeout = 10 * time.Second

// DefaultMetricCategory is the client's group in the broker's metrics, unless
// Options.MetricCategory is set.
const DefaultMetricCategory = "sscli"

// Options describe how to reach the store. Only Address is required. No verb of package fmt prints a password of
// Options, also not one of Proxy.
type Options struct {
	Address string      // host:port of the broker; may be empty if Dial is set
	TLS     *tls.Config // nil = plain text

	// WebSocket is the path of the WebSocket at Address, such as "/mqtt"; empty = no WebSocket.
	WebSocket string

	// Proxy is the proxy to connect through: a socks5, socks5h, http or https URL, with a user
	// and password if the proxy asks for them; nil = no proxy. Environment variables are not
	// used.
	Proxy    *url.URL
	ProxyTLS *tls.Config // for an https proxy; nil = trust the system's authorities

	// Dial opens the connection to Address; nil = TCP. It is not used with Proxy.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	Username string

	// Password returns the password; nil = none. It is called for each connection, so the password may change.
	// [Secret] returns one that does not.
	Password func() ([]byte, error)

	// TokenFile is a file with a Kubernetes service-account token, which is used instead of a user
	// name and password. The session reads the file for each new connection, and then at the interval
	// TokenPoll (0 = DefaultTokenPoll). It authenticates again as soon as the file has a new token,
	// and at the latest after 80 % of the old token's lifetime.
	TokenFile string
	TokenPoll time.Duration

	// ReadToken, if set, returns the token; TokenFile must then be empty. ReadToken is called for each
	// new connection, and then at the interval TokenPoll. As long as the last token that it returned is
	// valid, ReadToken must return immediately.
	ReadToken func(context.Context) ([]byte, error)

	// ClientID must be unique: the broker disconnects another client with the same id. Empty =
	// a random id.
	ClientID string

	// ResponseTopic is the topic for replies; empty = one that no other client uses.
	ResponseTopic string

	// NoPipelining delays SUBSCRIBE until CONNACK, and the GET that makes a connection until SUBACK; other
	// requests always wait for SUBACK. Without NoPipelining, SUBSCRIBE waits for CONNACK only if the session
	// logs in with a token, or if the broker closes connections on which other packets follow CONNECT
	// immediately.
	NoPipelining bool

	// MetricCategory is the client's group in the broker's metrics: the user property
	// `metriccategory` of CONNECT. Empty = DefaultMetricCategory.
	MetricCategory string

	HighPriority bool          // ask the broker to accept requests even under load
	Timeout      time.Duration // time limit of a call whose context has no deadline; 0 = DefaultTimeout
	KeepAlive    time.Duration // at least 1 s, rounded up to whole seconds, at most 65535 s; 0 = 60 s

	// RetryFor is how long a call goes on trying to connect before it sends anything. A command that only reads is
	// also sent again if the connection ends, or no reply comes, before its reply; a write never is. Each attempt has
	// its time limit. 0 = one attempt.
	RetryFor time.Duration

	// Logger gets connections that are made (Info), and those that are lost or cannot be made (Warn). nil = none.
	Logger *slog.Logger

	// Observe is called when the session begins to send a command, with the context of its caller, and the function
	// that it returns when the command has ended. That function may be nil. Each attempt within RetryFor counts, and so
	// do the commands of locks, but not those that a watch sends for itself. Several goroutines call Observe; neither
	// function may block or use the session. nil = none.
	Observe func(ctx context.Context, c Command) (done func(Result, error))

	// Trace is called for each packet, from several goroutines. It must not block or use the
	// session.
	Trace func(TraceEvent)
}

// Secret returns a function for Options.Password that returns text.
func Secret(text string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(text), nil }
}

// Format prints the options for package fmt, without the password of Proxy.
func (o Options) Format(f fmt.State, verb rune) {
	type options Options
	o.Proxy = mqtt.WithoutPassword(o.Proxy)
	fmt.Fprintf(f, fmt.FormatString(f, verb), options(o))
}

// hasToken reports whether the session logs in with a service-account token.
func (o Options) hasToken() bool { return o.TokenFile != "" || o.ReadToken != nil }

// Token returns the current service-account token, or nil if the session does not log in with
// a token. With TokenFile, the error is a *[TokenError].
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
	o.Timeout = min(cmp.Or(o.Timeout, DefaultTimeout), maxExpiry)
	o.TokenPoll = cmp.Or(o.TokenPoll, DefaultTokenPoll)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Timeout < 0:
		return o, invalid("the timeout %v must be greater than 0", o.Timeout)
	case o.RetryFor < 0:
		return o, invalid("the time to retry %v must not be negative", o.RetryFor)
	case o.KeepAlive != 0 && (o.KeepAlive < time.Second || o.KeepAlive > math.MaxUint16*time.Second):
		return o, invalid("the keep-alive %v must be at least 1s and at most 65535s", o.KeepAlive)
	case o.TokenPoll < 0:
		return o, invalid("the token poll interval %v must be greater than 0", o.TokenPoll)
	case o.hasToken() && (o.Username != "" || o.Password != nil):
		return o, invalid("a token cannot be combined with a user name or password")
	case o.TokenFile != "" && o.ReadToken != nil:
		return o, invalid("TokenFile cannot be combined with ReadToken")
	case o.WebSocket != "" && !strings.HasPrefix(o.WebSocket, "/"):
		return o, invalid("the path of a WebSocket must begin with /")
	}
	o.KeepAlive = (o.KeepAlive + time.Second - 1).Truncate(time.Second)
	if err := wire.CheckClientID(o.ClientID); err != nil {
		return o, &InvalidError{err}
	}
	if err := wire.CheckUsername(o.Username); err != nil {
		return o, &InvalidError{err}
	}
	if err := wire.CheckResponseTopic(o.ResponseTopic); err != nil {
		return o, &InvalidError{err}
	}
	if err := wire.CheckMetricCategory(o.MetricCategory); err != nil {
		return o, &InvalidError{err}
	}
	return o, o.checkAddress()
}

// checkAddress checks Address, unless it is only a name for Dial.
func (o Options) checkAddress() error {
	if o.Dial != nil && o.Proxy == nil {
		return nil
	}
	if o.Address == "" {
		return invalid("the address is empty: expected host:port, as ParseURL and FromEnv set it")
	}
	_, port, err := net.SplitHostPort(o.Address)
	if err == nil {
		err = checkPort(port)
	}
	if err != nil {
		return invalid("the address %.80q: expected host:port, with a port of 1 to 65535", o.Address)
	}
	return nil
}
