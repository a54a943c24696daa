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
// The log is nil unless it was asked for, so that a server without one does no work for it.
// The server waits until each line is written: no line is lost, and a slow reader of the log
// makes the server slow. No line has a password; keys and values are escaped.
package requestlog

import (
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
	form := a.Output
	switch {
	case f.form == "" && level == 0:
		return nil, nil
	case f.form == "json":
		form = "json"
	case f.form == "text" && a.Output == "json":
		form = "human"
	case f.form != "" && f.form != "text":
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
func (l *Log) print(e format.LogEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.out.Print(e)
}

// Engine writes what the store of [emulator.Attach] observed.
func (l *Log) Engine(o emulator.StoreObservation) {
	l.Observe(emulator.Observation{StoreObservation: o})
}

// Command writes a command of a Redis client on a store in another process.
func (l *Log) Command(seen redis.Seen) {
	o := emulator.Observation{Redis: &seen, Took: seen.Took}
	o.Kind, o.Time, o.ClientID, o.Username, o.Version = emulator.ObservedRedis, time.Now(), seen.Who.ID, seen.Who.User, seen.Version
	l.Observe(o)
}

// Observe writes what an emulator observed.
func (l *Log) Observe(o emulator.Observation) {
	e := format.LogEvent{
		Time: o.Time, Client: o.ClientID, User: o.Username,
		Outcome: string(o.Outcome), Cause: o.Cause, Notified: len(o.Notified),
		Remote: o.Remote, Protocol: map[byte]string{5: "MQTT 5", 4: "MQTT 3.1.1"}[o.MQTT], Reason: o.Reason,
	}
	if v, err := client.ParseVersion(string(o.Version)); err == nil { // else there is none
		e.Version = v
	}
	switch o.Kind {
	case emulator.ObservedRequest, emulator.ObservedRedis:
		l.request(e, o)
		return
	case emulator.ObservedExpiry:
		e.Op, e.Keys, e.Outcome = "expire", []string{string(o.Key)}, ""
	case emulator.ObservedRefusal:
		e.Op = "refuse"
	case emulator.ObservedConnect, emulator.ObservedDisconnect:
		if !l.detailed {
			return
		}
		e.Op = string(o.Kind)
	default:
		return
	}
	l.print(e)
}

// request writes a request, of the store's protocol or of a Redis client.
func (l *Log) request(e format.LogEvent, o emulator.Observation) {
	e.Op = "request"
	var d format.RequestDetail
	if l.detailed {
		e.Detail = &d
	}
	d.Took, d.Topic, d.Received = o.Took, o.Topic, len(o.Reply)
	for _, n := range o.Notified {
		d.Watchers = append(d.Watchers, n.ClientID)
	}
	if o.Redis == nil {
		describeRequest(&e, &d, o)
	} else if !describeCommand(&e, &d, o.Redis) && !l.detailed {
		return
	}
	l.print(e)
}

// describeRequest describes a request of the store's protocol.
func describeRequest(e *format.LogEvent, d *format.RequestDetail, o emulator.Observation) {
	e.Fence, d.Sent, d.Clock = string(o.Request.Fence), len(o.Request.Payload), string(o.Request.Timestamp)
	if len(o.Words) == 0 {
		return
	}
	e.Verb = strings.ToLower(string(o.Words[0]))
	rest := o.Words[1:]
	if len(rest) > 0 && e.Verb != "scan" {
		e.Keys, rest = []string{string(rest[0])}, rest[1:]
	}
	if len(rest) > 0 && (e.Verb == "set" || e.Verb == "vdel") {
		d.Value, rest = append([]byte{}, rest[0]...), rest[1:]
	}
	e.Options = words(rest)
	if o.Outcome == emulator.OutcomeOK {
		e.Result = result(e.Verb, o.Reply)
	}
}

// describeCommand describes a command of a Redis client. It returns false if the command has
// nothing to do with the store.
func describeCommand(e *format.LogEvent, d *format.RequestDetail, seen *redis.Seen) bool {
	e.Port, e.Verb, e.Options = "redis", seen.Name, words(seen.Options)
	for _, k := range seen.Keys {
		e.Keys = append(e.Keys, string(k))
	}
	d.Value, d.Received = seen.Value, len(seen.Reply)
	text, refused := seen.Refused()
	why, missed := seen.Missed()
	switch {
	case refused:
		e.Outcome, e.Cause = string(emulator.OutcomeRefused), text
	case missed:
		e.Outcome, e.Cause = string(emulator.OutcomeNo), why
	default:
		e.Outcome, e.Result = string(emulator.OutcomeOK), seen.Summary()
	}
	return seen.Store || refused
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
