package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/format"
)

func newDoctor(a *app) *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Find out why a connection does not work, or how well it does",
		GroupID: groupDebug,
		Long: `Climb the way to the store step by step: the settings and where they come from, the
host's name, TCP, TLS, the login, the subscription, a read, the round trip. Each step is
PASS, WARN, FAIL or SKIP, with the reason and the next thing to try. The first FAIL ends
it, with the exit code that other commands would end with; a WARN does not.

--write goes further: how far the local clock is from the store's, whether writes and
conditions do what they should, how long a change takes to be announced, whether there
is SCAN, and which forms of the protocol this broker speaks. It uses keys that begin
with ` + scratchPrefix + ` and something random, which are deleted in the end and expire
within a minute in any case.`,
		Example: "  sscli doctor\n  sscli doctor --write -o json | jq 'select(.status != \"pass\")'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if write {
				if err := a.confirm(cmd.Context(), "doctor --write"); err != nil {
					return err
				}
			}
			return a.doctor(cmd.Context(), write)
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "also write scratch keys, which are removed again")
	return cmd
}

// A checkup climbs the ladder of `doctor`.
type checkup struct {
	a       *app
	o       client.Options
	s       *client.Session
	summary format.CheckSummary
	way     way
}

func (a *app) doctor(ctx context.Context, write bool) (err error) {
	c := &checkup{a: a}
	err = c.climb(ctx, write)
	if printErr := a.emit(c.summary); err == nil {
		err = printErr
	}
	return err
}

func (c *checkup) climb(ctx context.Context, write bool) (err error) {
	o, undo, err := c.a.broker()
	if err != nil {
		return c.fail(ctx, "configuration", err)
	}
	defer func() { err = errors.Join(err, undo()) }()
	c.o = o
	if err := c.configuration(); err != nil {
		return err
	}
	if err := c.connect(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.s.Close()) }()
	if err := c.read(ctx); err != nil {
		return err
	}
	if err := c.roundTrip(ctx); err != nil {
		return err
	}
	if !write {
		return c.skip("write", "clock, writes, notifications, SCAN and the dialect need --write")
	}
	return c.scratch(ctx)
}

// print prints a check and counts it. The error is that of the output.
func (c *checkup) print(check format.Check) error {
	switch check.Status {
	case format.Pass:
		c.summary.Passed++
	case format.Warn:
		c.summary.Warned++
	case format.Fail:
		c.summary.Failed++
	case format.Skip:
		c.summary.Skipped++
	}
	return c.a.emit(check)
}

func (c *checkup) skip(name, why string) error {
	return c.print(format.Check{Name: name, Status: format.Skip, Message: why})
}

// fail prints what ends the climb, and returns it as printed.
func (c *checkup) fail(ctx context.Context, name string, err error, facts ...format.Fact) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // a signal is nothing that the check found
	}
	f, _ := c.a.explain(err)
	if printErr := c.print(format.Check{Name: name, Status: format.Fail, Message: f.Message, Hint: f.Hint, Facts: facts}); printErr != nil {
		return printErr
	}
	return &exitError{f.Code, err}
}

func (c *checkup) configuration() error {
	s := c.a.settings
	check := format.Check{Name: "configuration", Status: format.Pass, Message: "an emulator inside this process (--embedded)"}
	if !s.Embedded {
		check.Message = s.URL()
	}
	for _, e := range s.Effective() {
		check.Facts = append(check.Facts, format.Fact{Name: e.Flag, Value: e.Value, Source: e.Source})
	}
	if c.o.TokenFile != "" {
		// That it cannot be read is told when it is used.
		if token, err := os.ReadFile(c.o.TokenFile); err == nil {
			if _, expires := client.TokenTimes(bytes.TrimSpace(token)); !expires.IsZero() {
				check.Facts = append(check.Facts, format.Fact{Name: "token expires", Value: expires.UTC().Format(time.RFC3339)})
			}
		}
	}
	switch secret := c.o.Password != nil || c.o.TokenFile != ""; {
	case s.Insecure:
		check.Status = format.Warn
		check.Message += ": --tls-insecure, so anybody can be the broker"
		check.Hint = "--ca-file with the certificate of the broker's CA"
	case secret && !s.TLS && !isLoopback(c.o.Address):
		check.Status = format.Warn
		check.Message += ": a secret goes over the network in plain text"
		check.Hint = "--tls, at the broker's port for it (8883)"
	}
	return c.print(check)
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// connect makes the connection that all further checks use, and tells of each of
// its stages.
func (c *checkup) connect(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	watched := c.way.observe(limited, &c.o)
	var err error
	c.s, err = client.Dial(watched, c.o)
	end := mqtt.Stage("")
	if err != nil {
		dial, ok := errors.AsType[*mqtt.DialError](err)
		if !ok {
			return c.fail(ctx, "configuration", err)
		}
		end = dial.Stage
	}
	for _, stage := range c.stages() {
		if stage == end {
			return c.fail(ctx, rung(stage), err, shownCertificate(err)...)
		}
		if err := c.stage(stage); err != nil {
			return err
		}
	}
	return nil
}

// stages are the steps of this connection, in their order.
func (c *checkup) stages() []mqtt.Stage {
	stages := []mqtt.Stage{mqtt.StageLookup, mqtt.StageTCP}
	if c.o.Proxy != nil {
		stages = []mqtt.Stage{mqtt.StageProxy}
	}
	stages = append(stages, mqtt.StageTLS)
	if c.o.WebSocket != "" {
		stages = append(stages, mqtt.StageWebSocket)
	}
	return append(stages, mqtt.StageConnect, mqtt.StageSubscribe)
}

func rung(stage mqtt.Stage) string {
	switch stage {
	case mqtt.StageLookup:
		return "lookup"
	case mqtt.StageTCP:
		return "tcp"
	case mqtt.StageProxy:
		return "proxy"
	case mqtt.StageTLS:
		return "tls"
	case mqtt.StageWebSocket:
		return "websocket"
	case mqtt.StageConnect:
		return "connect"
	}
	return "subscribe"
}

// stage tells of a stage that went well.
func (c *checkup) stage(stage mqtt.Stage) error {
	w := &c.way
	w.mu.Lock()
	defer w.mu.Unlock()
	check := format.Check{Name: rung(stage), Status: format.Pass, Took: w.took[stage].Round(time.Microsecond)}
	host, _, _ := net.SplitHostPort(c.o.Address)
	switch stage {
	case mqtt.StageLookup:
		if len(w.addresses) == 0 {
			return c.skip(check.Name, host+" is an address")
		}
		check.Message = host + " is " + strings.Join(w.addresses, ", ")
	case mqtt.StageTCP:
		check.Message = w.peer
	case mqtt.StageProxy:
		check.Message = c.o.Proxy.Redacted() + " connects to " + c.o.Address
	case mqtt.StageTLS:
		if c.o.TLS == nil {
			return c.skip(check.Name, "the connection is in plain text")
		}
		c.certificates(&check, time.Now())
	case mqtt.StageWebSocket:
		check.Message = c.o.WebSocket
	case mqtt.StageConnect:
		check.Message = "the broker let the client in " + loggedIn(c.o)
		check.Facts = []format.Fact{{Name: "CONNECT", Value: w.said["CONNECT"]}, {Name: "CONNACK", Value: w.said["CONNACK"]}}
	case mqtt.StageSubscribe:
		check.Message = w.said["SUBSCRIBE"]
	}
	return c.print(check)
}

// loggedIn says as whom.
func loggedIn(o client.Options) string {
	var by []string
	if o.TLS != nil && len(o.TLS.Certificates) > 0 {
		by = append(by, fmt.Sprintf("with the certificate of %q", o.TLS.Certificates[0].Leaf.Subject))
	}
	switch {
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

// certificates tells of the broker's certificate: whom it is for, who says so, and
// for how long.
func (c *checkup) certificates(check *format.Check, now time.Time) {
	state := c.way.tls
	leaf := state.PeerCertificates[0]
	check.Message = fmt.Sprintf("%s, %s", tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite))
	check.Facts = chain(state.PeerCertificates)
	if c.o.TLS.InsecureSkipVerify {
		options := x509.VerifyOptions{Roots: c.o.TLS.RootCAs, DNSName: state.ServerName, Intermediates: x509.NewCertPool()}
		for _, cert := range state.PeerCertificates[1:] {
			options.Intermediates.AddCert(cert)
		}
		if _, err := leaf.Verify(options); err != nil {
			check.Status, check.Message = format.Warn, check.Message+"; without --tls-insecure it is refused: "+err.Error()
		}
		return
	}
	const soon = 14 * 24 * time.Hour
	for _, cert := range append(slices.Clone(state.PeerCertificates), leaves(c.o.TLS.Certificates)...) {
		if left := cert.NotAfter.Sub(now); left < soon {
			check.Status = format.Warn
			check.Hint = "a new certificate in time"
			check.Message += fmt.Sprintf("; the certificate of %q ends in %s", cert.Subject, left.Round(time.Minute))
			return
		}
	}
}

func leaves(certificates []tls.Certificate) (found []*x509.Certificate) {
	for _, c := range certificates {
		found = append(found, c.Leaf)
	}
	return found
}

func chain(certificates []*x509.Certificate) (facts []format.Fact) {
	for i, cert := range certificates {
		name := "certificate"
		if i > 0 {
			name = "signed by"
		}
		value := fmt.Sprintf("%s, %s to %s", cert.Subject, cert.NotBefore.UTC().Format(time.DateOnly), cert.NotAfter.UTC().Format(time.DateOnly))
		if names := names(cert); i == 0 && len(names) > 0 {
			value += ", for " + strings.Join(names, ", ")
		}
		facts = append(facts, format.Fact{Name: name, Value: value})
		if i == len(certificates)-1 && cert.Issuer.String() != cert.Subject.String() {
			facts = append(facts, format.Fact{Name: "signed by", Value: cert.Issuer.String()})
		}
	}
	return facts
}

// names are the hosts that a certificate is for.
func names(cert *x509.Certificate) []string {
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// shownCertificate is what the broker showed if it was not believed.
func shownCertificate(err error) []format.Fact {
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return chain(e.UnverifiedCertificates)
	}
	return nil
}

// read reads a key, which shows that a store answers.
func (c *checkup) read(ctx context.Context) error {
	began := time.Now()
	reply, err := c.s.Get(ctx, pingKey)
	check := format.Check{Name: "store", Status: format.Pass, Message: "the store answers", Took: reply.RTT}
	refused, isStore := errors.AsType[*wire.StoreError](err)
	switch {
	case isStore:
		f, _ := c.a.explain(err)
		check.Status, check.Hint, check.Took = format.Warn, f.Hint, time.Since(began)
		check.Message = fmt.Sprintf("the store answers, and refuses to get %s: %s", pingKey, refused.Text)
	case err != nil:
		return c.fail(ctx, check.Name, describe(client.Get(pingKey), err))
	}
	c.a.attend(reply.ReplyInfo)
	return c.print(check)
}

// roundTrips is how many are measured.
const roundTrips = 10

func (c *checkup) roundTrip(ctx context.Context) error {
	var took []time.Duration
	for range roundTrips {
		began := time.Now()
		reply, err := c.s.Get(ctx, pingKey)
		if _, refused := errors.AsType[*wire.StoreError](err); refused {
			reply.RTT = time.Since(began)
		} else if err != nil {
			return c.fail(ctx, "round trip", describe(client.Get(pingKey), err))
		}
		took = append(took, reply.RTT)
	}
	s := summary(roundTrips, took)
	return c.print(format.Check{
		Name: "round trip", Status: format.Pass, Took: s.Avg,
		Message: fmt.Sprintf("%d times, %v to %v", roundTrips, s.Min.Round(time.Microsecond), s.Max.Round(time.Microsecond)),
	})
}
