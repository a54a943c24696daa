package app

import (
	"errors"
	"strings"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/wire"
)

// ruleToAskFor returns the authorization rule, in the form of the resource, that would have allowed what the
// broker refused, or "" if the error is another one. It names the client as the settings do.
func (a *App) ruleToAskFor(err error) string {
	var action policy.Action
	if e, ok := errors.AsType[*mqtt.ReasonError](err); ok && e.Code == mqtt.ReasonNotAuthorized && e.Topic != "" {
		action = policy.Action{Method: policy.Subscribe, On: e.Topic}
		if e.Packet == "PUBACK" {
			action.Method = policy.Publish
		}
	} else if fault.IsStoreError(wire.ErrorNotAuthorized)(err) {
		verb, key := fault.Request(err)
		action = policy.Action{Method: policy.Write, On: key}
		if verb == wire.VerbGet || verb == wire.VerbKeyNotify || fault.IsA[*client.WatchError](err) {
			action.Method = policy.Read
		}
	}
	if action.On == "" {
		return ""
	}
	deed := policy.Deed{Principal: a.principal(), Action: action}
	if a.Settings.ClientID == "" && strings.HasPrefix(action.On, wire.NotifyTopics) {
		return "" // it has the id in hexadecimal, for which no token stands, and a filter for all ids would show what others watch
	}
	if a.Settings.ClientID == "" && action.Method != policy.Read && action.Method != policy.Write {
		deed.On, deed.Written = anyOwn(deed.On), true // the client id is another one each time
	}
	rules, err := policy.Suggest([]policy.Deed{deed})
	if err != nil || len(rules) != 1 {
		return ""
	}
	for _, prefix := range []string{DoctorKeys, BenchKeys} { // each run has other keys below it
		if strings.HasPrefix(action.On, prefix) {
			e := rules[0].Entries[0]
			e.Methods, e.Type, e.Text = policy.Read|policy.Write, policy.Pattern, prefix+"*/*"
		}
	}
	return rules[0].Flow()
}

// anyOwn returns the topic of a rule for a client's own topic, whatever its id.
func anyOwn(topic string) string {
	levels := strings.Split(topic, "/")
	if len(levels) > 2 && levels[0] == "clients" && strings.HasPrefix(levels[1], "sscli-") {
		levels[1] = "{principal.clientId}"
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
	if s.ClientID != "" {
		return policy.Principal{ClientID: s.ClientID}
	}
	return policy.Principal{Attributes: map[string]string{"NAME": "VALUE"}}
}
