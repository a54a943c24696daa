package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/mqtt"
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
