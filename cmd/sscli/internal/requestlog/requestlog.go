// Package requestlog is the log of `serve -v` and `gateway -v`: a line on standard error for
// each request, as the store saw it.
//
//	var f requestlog.Flags
//	f.Bind(cmd.Flags())
//	…
//	log, err := f.Open(a)
//	if err != nil {
//		return err
//	}
//	if log != nil {
//		options.Observe = log.Observe
//	}
//
// The log is nil unless it was asked for, so that a server without one need not look at it.
// Each line is written before the server goes on: none is lost, and a reader of the log
// slowly makes the server slow. Passwords are in no line; keys and values are escaped.
package requestlog

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/redis"
)

// Flags are the flags of a log.
type Flags struct{ form config.Text }

const (
	formText = "text"
	formJSON = "json"
)

// Bind defines the flags.
func (f *Flags) Bind(fs *pflag.FlagSet) {
	fs.Var(&f.form, "log-format", "`FORM` of the lines of -v: text, or json with one object per line; implies -v")
}

// A Log writes lines. Its methods may be called by several goroutines.
type Log struct {
	detailed bool // -vv

	mu  sync.Mutex
	out *format.Printer
}

// Open returns the log, or nil if nothing is logged. With JSON, everything else on standard
// error is JSON from now on, too.
func (f Flags) Open(a *app.App) (*Log, error) {
	level := a.Settings.Verbose
	if level == 0 && f.form == "" {
		return nil, nil
	}
	form := a.Output
	switch {
	case f.form == formJSON:
		form = formJSON
	case f.form == formText && a.Output == formJSON:
		form = "human"
	case f.form != "" && f.form != formText:
		return nil, fault.Usagef("--log-format %.32q: want text or json", string(f.form))
	}
	out, err := a.Diagnostics(form)
	if err != nil {
		return nil, err
	}
	if a.Faults, err = a.Diagnostics(form); err != nil {
		return nil, err
	}
	return &Log{detailed: level > 1, out: out}, nil
}

// print writes a line. An error is ignored: there is no place left to report it.
func (l *Log) print(r format.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.out.Print(r)
}

// Observe writes what an emulator saw.
func (l *Log) Observe(o emulator.Observation) {
	switch o.Kind {
	case emulator.ObservedRequest:
		l.print(l.request(o))
	case emulator.ObservedExpiry:
		l.print(format.Expiry{Time: o.Time, Key: string(o.Key), Version: version(o.Version), Notified: len(o.Notified)})
	case emulator.ObservedRedis:
		l.redis(o)
	case emulator.ObservedRefusal:
		l.print(connection("refuse", o))
	case emulator.ObservedConnect:
		if l.detailed {
			l.print(connection("connect", o))
		}
	case emulator.ObservedDisconnect:
		if l.detailed {
			l.print(connection("disconnect", o))
		}
	}
}

// Engine writes what the store of [emulator.Attach] saw.
func (l *Log) Engine(o emulator.StoreObservation) {
	l.Observe(emulator.Observation{StoreObservation: o})
}

// Command writes a command of a Redis client, of which the store is not in this process.
func (l *Log) Command(seen redis.Seen) {
	o := emulator.Observation{Redis: &seen, Took: seen.Took}
	o.Time, o.ClientID, o.Username, o.Version = time.Now(), seen.Who.ID, seen.Who.User, seen.Version
	l.redis(o)
}

func connection(op string, o emulator.Observation) format.Connection {
	c := format.Connection{Op: op, Time: o.Time, Client: o.ClientID, User: o.Username, Remote: o.Remote, Reason: o.Reason}
	switch o.MQTT {
	case 5:
		c.Protocol = "MQTT 5"
	case 4:
		c.Protocol = "MQTT 3.1.1"
	}
	return c
}

func version(text []byte) format.Version {
	v, err := client.ParseVersion(string(text))
	if err != nil { // there is none
		return nil
	}
	return v
}

// base is what requests have in common, whichever way they came.
func (l *Log) base(o emulator.Observation) format.Request {
	r := format.Request{
		Time: o.Time, Client: o.ClientID, User: o.Username,
		Outcome: string(o.Outcome), Cause: o.Cause, Version: version(o.Version), Notified: len(o.Notified),
	}
	if l.detailed {
		r.Detail = &format.RequestDetail{Took: o.Took, Topic: o.Topic, Received: len(o.Reply)}
		for _, n := range o.Notified {
			r.Detail.Watchers = append(r.Detail.Watchers, n.ClientID)
		}
	}
	return r
}

// request describes a request of the store's protocol.
func (l *Log) request(o emulator.Observation) format.Request {
	r := l.base(o)
	r.Fence = string(o.Request.Fence)
	if r.Detail != nil {
		r.Detail.Sent, r.Detail.Clock = len(o.Request.Payload), string(o.Request.Timestamp)
	}
	if len(o.Words) == 0 {
		return r
	}
	r.Verb = strings.ToLower(string(o.Words[0]))
	rest := o.Words[1:]
	if len(rest) > 0 && r.Verb != "scan" {
		r.Keys, rest = []string{string(rest[0])}, rest[1:]
	}
	if len(rest) > 0 && (r.Verb == "set" || r.Verb == "vdel") {
		if r.Detail != nil {
			r.Detail.Value, r.Detail.HasValue = rest[0], true
		}
		rest = rest[1:]
	}
	r.Options = words(rest)
	if r.Outcome == string(emulator.OutcomeOK) {
		r.Result = result(r.Verb, o.Reply)
	}
	return r
}

// words joins words as one types them.
func words(all [][]byte) string {
	typed := make([]string, len(all))
	for i, w := range all {
		typed[i] = format.BriefWord(w)
	}
	return strings.Join(typed, " ")
}

// result is a reply in a few words.
func result(verb string, payload []byte) string {
	reply, err := wire.ParseReply(payload)
	if err != nil {
		return ""
	}
	switch v := reply.Value; v.Kind {
	case wire.Blob:
		return format.Count(len(v.Text), "byte")
	case wire.Array:
		keys := 0
		if len(v.Items) > 0 { // of SCAN: the page, and how to go on
			keys = len(v.Items[0].Items)
		}
		return format.Count(keys, "key")
	case wire.Integer:
		switch verb {
		case "del", "vdel":
			return "deleted"
		case "keynotify":
			return "stopped"
		}
		return strconv.FormatInt(v.Int, 10)
	default:
		return string(v.Text)
	}
}

// redis writes a command of a Redis client, unless it has nothing to do with the store and no
// detail is wanted.
func (l *Log) redis(o emulator.Observation) {
	seen := o.Redis
	text, refused := seen.Refused()
	if !seen.Store && !refused && !l.detailed {
		return
	}
	r := l.base(o)
	r.Port, r.Verb, r.Options = "redis", seen.Name, words(seen.Options)
	for _, k := range seen.Keys {
		r.Keys = append(r.Keys, string(bytes.Clone(k)))
	}
	if r.Detail != nil {
		r.Detail.Value, r.Detail.HasValue, r.Detail.Received = seen.Value, seen.Value != nil, len(seen.Reply)
	}
	why, missed := seen.Missed()
	switch {
	case refused:
		r.Outcome, r.Cause = string(emulator.OutcomeRefused), text
	case missed:
		r.Outcome, r.Cause = string(emulator.OutcomeNo), why
	default:
		r.Outcome, r.Result = string(emulator.OutcomeOK), seen.Summary()
	}
	l.print(r)
}
