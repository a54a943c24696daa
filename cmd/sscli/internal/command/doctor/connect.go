package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/cmd/sscli/internal/command/ping"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// connect makes the connection that all later checks use. Each stage of connecting is a check.
func (c *checkup) connect(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	s, err := client.Dial(c.recorder.record(limited, &c.o), c.o)
	failed := mqtt.Stage("")
	if dial, ok := errors.AsType[*mqtt.DialError](err); ok {
		failed = dial.Stage
	} else if err != nil {
		return c.fail(ctx, "configuration", err)
	}
	c.s = s
	for _, stage := range []struct {
		stage mqtt.Stage
		name  string // name of the check
		used  bool   // whether to print a check for the stage
	}{
		{mqtt.StageLookup, "lookup", c.o.Proxy == nil && c.a.Settings.Via == nil},
		{mqtt.StageTCP, "tcp", c.o.Proxy == nil},
		{mqtt.StageProxy, "proxy", c.o.Proxy != nil},
		{mqtt.StageTLS, "tls", true},
		{mqtt.StageWebSocket, "websocket", c.o.WebSocket != ""},
		{mqtt.StageConnect, "connect", true},
		{mqtt.StageSubscribe, "subscribe", true},
	} {
		switch {
		case !stage.used:
			continue
		case stage.stage == failed:
			var facts []format.Fact
			if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
				facts = chain(e.UnverifiedCertificates)
			}
			return c.fail(ctx, stage.name, err, facts...)
		}
		if err := c.stage(stage.stage, stage.name); err != nil {
			return err
		}
	}
	return nil
}

func (c *checkup) stage(stage mqtt.Stage, name string) error {
	r := &c.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	check := format.Check{Name: name, Status: format.Pass, Took: r.took[stage].Round(time.Microsecond)}
	host, _, _ := net.SplitHostPort(c.o.Address)
	switch stage {
	case mqtt.StageLookup:
		if len(r.addresses) == 0 {
			return c.skip(check.Name, host+" is an address, not a name")
		}
		check.Message = host + " is " + strings.Join(r.addresses, ", ")
	case mqtt.StageTCP:
		check.Message = r.peer
	case mqtt.StageProxy:
		check.Message = c.o.Proxy.Redacted() + " connects to " + c.o.Address
	case mqtt.StageTLS:
		if c.o.TLS == nil {
			return c.skip(check.Name, "the connection is in plain text")
		}
		c.certificates(&check, time.Now())
	case mqtt.StageWebSocket:
		check.Message, _, _ = strings.Cut(c.o.WebSocket, "?") // the query may hold a secret
	case mqtt.StageConnect:
		check.Message = "the broker accepted the client " + login(c.o)
		check.Facts = []format.Fact{{Name: "CONNECT", Value: r.first["CONNECT"]}, {Name: "CONNACK", Value: r.first["CONNACK"]}}
	case mqtt.StageSubscribe:
		check.Message = r.first["SUBSCRIBE"]
	}
	return c.print(check)
}

// login describes the login, such as `as "operator"`.
func login(o client.Options) string {
	var by []string
	if o.TLS != nil && len(o.TLS.Certificates) > 0 {
		by = append(by, fmt.Sprintf("with the certificate of %q", o.TLS.Certificates[0].Leaf.Subject))
	}
	switch {
	case o.ReadToken != nil:
		by = append(by, "with a service-account token")
	case o.TokenFile != "":
		by = append(by, "with the service-account token of "+o.TokenFile)
	case o.Username != "":
		by = append(by, fmt.Sprintf("as %q", o.Username))
	}
	if len(by) == 0 {
		return "without a login"
	}
	return strings.Join(by, " and ")
}

// certificates adds the broker's certificates to a check: names, issuers and dates. It warns if a
// certificate of the broker or of the user expires soon. With --tls-insecure, it warns instead if
// verification would refuse the broker.
func (c *checkup) certificates(check *format.Check, now time.Time) {
	state := c.recorder.tls
	leaf := state.PeerCertificates[0]
	check.Message = fmt.Sprintf("%s, %s", tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite))
	check.Facts = chain(state.PeerCertificates)
	if c.o.TLS.InsecureSkipVerify {
		// state.ServerName is empty if the host is an address.
		options := x509.VerifyOptions{Roots: c.o.TLS.RootCAs, DNSName: c.o.TLS.ServerName, Intermediates: x509.NewCertPool()}
		for _, cert := range state.PeerCertificates[1:] {
			options.Intermediates.AddCert(cert)
		}
		if _, err := leaf.Verify(options); err != nil {
			check.Status, check.Message = format.Warn, check.Message+"; without --tls-insecure it would be refused: "+err.Error()
		}
		return
	}
	const soon = 14 * 24 * time.Hour
	first := certs.FirstToExpire(*state, c.o.TLS.Certificates)
	if left := first.NotAfter.Sub(now); left < soon {
		check.Status = format.Warn
		check.Hint = "renew the certificate before then"
		check.Message += fmt.Sprintf("; the certificate of %q expires in %s", first.Subject, left.Round(time.Minute))
	}
}

// chain returns facts about a chain of certificates, which begins with the broker's own.
func chain(certificates []*x509.Certificate) (facts []format.Fact) {
	for i, cert := range certificates {
		name := "certificate"
		if i > 0 {
			name = "signed by"
		}
		value := fmt.Sprintf("%s, %s to %s", cert.Subject, cert.NotBefore.UTC().Format(time.DateOnly), cert.NotAfter.UTC().Format(time.DateOnly))
		hosts := slices.Clone(cert.DNSNames)
		for _, ip := range cert.IPAddresses {
			hosts = append(hosts, ip.String())
		}
		if i == 0 && len(hosts) > 0 {
			value += ", for " + strings.Join(hosts, ", ")
		}
		facts = append(facts, format.Fact{Name: name, Value: value})
		if i == len(certificates)-1 && cert.Issuer.String() != cert.Subject.String() {
			facts = append(facts, format.Fact{Name: "signed by", Value: cert.Issuer.String()})
		}
	}
	return facts
}

func (c *checkup) read(ctx context.Context) error {
	began := time.Now()
	reply, err := c.s.Get(ctx, ping.Key)
	check := format.Check{Name: "store", Status: format.Pass, Message: "the store answers", Took: reply.RTT}
	refused, isStore := errors.AsType[*wire.StoreError](err)
	switch {
	case isStore:
		f, _ := c.a.FaultOf(fault.Describe(client.Get(ping.Key), err))
		check.Status, check.Hint, check.Took = format.Warn, f.Hint.String(), time.Since(began)
		check.Message = fmt.Sprintf("the store answers, but refuses get %s: %s", ping.Key, refused.Text)
	case err != nil:
		return c.fail(ctx, check.Name, fault.Describe(client.Get(ping.Key), err))
	}
	c.a.WarnOf(reply.ReplyInfo)
	return c.print(check)
}

func (c *checkup) roundTrip(ctx context.Context) error {
	const roundTrips = 10
	var took []time.Duration
	for range roundTrips {
		rtt, err := ping.RoundTrip(ctx, c.s, c.o.Timeout)
		if err != nil {
			return c.fail(ctx, "round trip", fault.Describe(client.Get(ping.Key), err))
		}
		took = append(took, rtt)
	}
	if n := c.recorder.answers.Most(); n > 1 {
		return c.fail(ctx, "stores", &fault.StoresError{Answers: n})
	}
	s := ping.Summary(roundTrips, took)
	return c.pass("round trip", s.Avg, fmt.Sprintf("%d times, %v to %v", roundTrips, s.Min.Round(time.Microsecond), s.Max.Round(time.Microsecond)))
}
