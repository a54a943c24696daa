package app

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/wire"
)

// ruleToAskFor returns the authorization rule, in the form of the resource, that would have allowed what the
// broker refused, or "" if the error, which has this kind, is another one. It names the client as the settings
// do. The text was read back, and allows the client what was refused.
func (a *App) ruleToAskFor(kind string, err error) string {
	s, deed := a.Settings, policy.Deed{Principal: a.principal()}
	prefix := cmp.Or(s.ClientIDPrefix, "sscli") + "-" // of the client id, which is another one each time
	if e, ok := errors.AsType[*mqtt.ReasonError](err); ok && e.Code == mqtt.ReasonNotAuthorized && e.Topic != "" {
		deed.Action = policy.Action{Method: policy.Subscribe, On: e.Topic}
		if e.Packet == "PUBACK" {
			deed.Method = policy.Publish
		}
		if s.ClientID == "" && strings.HasPrefix(e.Topic, wire.NotifyTopics) {
			return "" // it has the id in hexadecimal, for which no token stands, and a filter for all ids would show what others watch
		}
		if s.ClientID == "" {
			deed.On, deed.Written = anyOwn(e.Topic, prefix), true
		}
	} else if fault.IsStoreError(wire.ErrorNotAuthorized)(err) {
		verb, key := fault.Request(err)
		deed.Action = policy.Action{Method: policy.Write, On: key}
		switch verb {
		case wire.VerbGet, wire.VerbKeyNotify:
			deed.Method = policy.Read
		case "": // who holds a lock reads it, too
			deed.Method = policy.Read | policy.Write
		}
	} else if kind == "connect_denied" && !s.Embedded && (deed.Username != "" || s.TLS && s.CertFile != "" || s.ClusterAccount() != "" || s.SATFile != "" && tokenAge(s.SATFile, time.Now()) != "") {
		deed.Method = policy.Connect
	}
	if deed.On == "" && deed.Method != policy.Connect {
		return ""
	}
	rules, err := policy.Suggest(context.Background(), []policy.Deed{deed})
	if err != nil || len(rules) != 1 {
		return ""
	}
	entry := rules[0].Entries[0]
	if deed.Method == policy.Connect {
		entry.ClientIDs = []string{prefix + "*"}
		if s.ClientID != "" {
			entry.ClientIDs[0] = policy.QuotePattern(s.ClientID)
		}
	}
	for _, keys := range []string{DoctorKeys, BenchKeys} { // each run has other keys below it
		if strings.HasPrefix(deed.On, keys) {
			entry.Methods, entry.Type, entry.Text = policy.Read|policy.Write, policy.Pattern, keys+"*/*"
		}
	}
	text := rules[0].Flow()
	deed.ClientID = cmp.Or(s.ClientID, prefix+"0")
	deed.On = strings.Replace(deed.On, ownID, deed.ClientID, 1)
	read, err := policy.Parse("", []byte(text))
	if err != nil {
		return ""
	}
	if d := read.Decide(deed.Principal, deed.Action); !d.Allowed || d.Entry.Methods&deed.Method != deed.Method {
		return ""
	}
	if s.SATFile != "" || s.ClusterAccount() != "" {
		text += " # the service account has the annotation aio-broker-auth/NAME: VALUE"
	}
	return text
}

// ownID stands for a client's own id in a rule.
const ownID = "{principal.clientId}"

// anyOwn returns the topic of a rule for a client's own topic, whatever its id, which has the prefix.
func anyOwn(topic, prefix string) string {
	levels := strings.Split(topic, "/")
	if len(levels) > 2 && levels[0] == "clients" && strings.HasPrefix(levels[1], prefix) {
		levels[1] = ownID
	}
	return strings.Join(levels, "/")
}

// principal returns the client as the broker's rules name it: by the user name or the certificate's common
// name, by the client id that was asked for or, for a service account, by an attribute that the user must
// fill in.
func (a *App) principal() policy.Principal {
	s := a.Settings
	if s.Username != "" {
		return policy.Principal{Username: s.Username}
	}
	if s.TLS && s.CertFile != "" {
		if c, err := certs.Certificate(s.CertFile); err == nil && c.Subject.CommonName != "" {
			return policy.Principal{Username: c.Subject.CommonName}
		}
	}
	if s.ClientID != "" && s.SATFile == "" && s.ClusterAccount() == "" {
		return policy.Principal{ClientID: s.ClientID}
	}
	return policy.Principal{Attributes: map[string]string{"NAME": "VALUE"}}
}

// Confirm must be called before every write. If it returns an error, the caller must not send the
// write. what, such as `set "a"`, describes the write in a few words.
//
// In a protected context, Confirm asks the user on the terminal each time, except with --yes or after
// ConfirmAll. The error is a *fault.ProtectedError if the user declines or if [App.CanAsk] is false.
// Confirm does not need a connection.
func (a *App) Confirm(ctx context.Context, what string) error {
	if !a.Settings.Protected {
		return nil
	}
	return a.ConfirmAlways(ctx, what)
}

// ConfirmAlways is like Confirm, for a write that must be confirmed in every context. details follow what in the question,
// and in the error where there is room.
func (a *App) ConfirmAlways(ctx context.Context, what string, details ...string) error {
	if a.Settings.Yes || a.confirmed {
		return nil
	}
	refused, why := &fault.ProtectedError{What: what, Details: details, Batch: a.Streaming}, ""
	if a.Settings.Protected {
		refused.Context = a.Settings.Context
		why = ": context " + refused.Context + " is protected"
	}
	if !a.CanAsk() {
		return refused
	}
	a.Signals.Arm()
	answer, err := terminal.Ask(ctx, a.Stderr, strings.Join(append([]string{what}, details...), "; ")+why+". Continue? [y/N] ")
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	refused.Refused = true
	return refused
}

// CanAsk reports whether sscli can ask the user: standard input and standard error are a terminal,
// and the command does not read its data from standard input.
func (a *App) CanAsk() bool {
	typed := a.Shell != nil || a.inputIsTerminal() // sscli's shell runs on a terminal
	return typed && !a.Streaming && term.IsTerminal(int(a.Stderr.Fd()))
}

// ConfirmAll is like Confirm, but the user is asked only once: a yes holds for all later writes,
// and a no for all later calls to ConfirmAll.
func (a *App) ConfirmAll(ctx context.Context, what string) error {
	if a.declined {
		return &fault.ProtectedError{Context: a.Settings.Context, What: what, Refused: true}
	}
	err := a.Confirm(ctx, what)
	if e, ok := errors.AsType[*fault.ProtectedError](err); ok {
		a.declined = e.Refused
	}
	a.confirmed = err == nil && a.Settings.Protected
	return err
}
