package app

import (
	"sync"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/observe"
)

// LogFlags holds the flag --log-format of servers.
type LogFlags struct{ form config.Text }

// Bind adds the flag to fs.
func (f *LogFlags) Bind(fs *pflag.FlagSet) {
	fs.Var(&f.form, "log-format", "`FORM` of the lines of -v: text, or json with one object per line; implies -v")
}

// A RequestLog is the log of `serve -v` and `gateway -v`: a line on standard error for each request,
// as the store saw it. A reader of the log that stalls does not slow the server down: lines that cannot
// be written within a second are dropped and counted. Lines contain no passwords; keys and values are escaped.
// Its methods may be called concurrently.
type RequestLog struct {
	detailed bool // whether -vv was given

	mu  sync.Mutex
	out *format.Printer
}

// Open returns the log, or nil if the user did not ask for one: a server without a log spends no time
// on logging. The form of the log, such as JSON, then
// also applies to all other messages on standard error.
func (f LogFlags) Open(a *App) (*RequestLog, error) {
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
		return nil, fault.Usagef("--log-format %.32q: must be text or json", string(f.form))
	}
	out, err := a.Diagnostics(form)
	if err != nil {
		return nil, err
	}
	if a.Faults, err = a.Diagnostics(form); err != nil {
		return nil, err
	}
	return &RequestLog{detailed: level > 1, out: out}, nil
}

// Observe writes a line for an event. It omits events whose Op is [observe.Apply] and, without -vv,
// minor events. It ignores write errors, because there is no place left to report them.
func (l *RequestLog) Observe(e observe.Event) {
	if e.Op == observe.Apply || e.Minor && !l.detailed {
		return
	}
	line := format.LogEvent{Event: e, Detailed: l.detailed}
	if v, err := client.ParseVersion(e.Version); err == nil { // otherwise the event has no version
		line.Parsed = v
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.out.Print(line)
}
