// Package watch is the command `sscli watch`, which prints the changes of keys, or runs a command for
// each change.
//
//	sscli watch setpoint
//	sscli watch config -- ./reload.sh
//
// [New] makes the command. Events come from client.Session.Watch, which documents what a watch
// guarantees. This package decides when the watch ends, and with which exit code. It runs commands one
// at a time, in the order of the events, while up to --buffer events wait. When standard output is
// closed, the watch ends immediately.
package watch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/jsonfield"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
)

// An end is the name of the flag that ended a watch, as [format.End] prints it. It is an error so that
// it can be the cause of a context.
type end string

func (e end) Error() string { return "ended by --" + string(e) }

const (
	endFor   end = "for" // the time of --for has passed
	endUntil end = "until"
	endCount end = "count"
)

type flags struct {
	count                int
	forDur               usage.Duration
	until                config.Text
	noInitial, failOnGap bool
	keepGoing            bool
	buffer               int
	audit, rescan        usage.Duration
	match                config.Text
	keysFrom             usage.KeysFrom
	field                config.Text
	show                 format.Show
}

// New returns the command `sscli watch`.
func New(a *app.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:     "watch KEY... [-- CMD...]",
		Short:   "Stream changes of keys",
		GroupID: app.GroupFirst,
		Long: `Print the value of each key (initial), then each change (set, delete) as it happens,
until interrupted. Keys are exact.

The store sends no notifications for patterns. With --match PATTERN, watch lists the keys
that match, as scan does, and watches them. It scans again every 5s (--rescan) and prints
each new key with its value (found). After the keys of the first scan, and after those of
--keys-from, a ready event says how many keys are watched. watch cannot know when, between the two scans, the
key was created, or which values it held before. A found event counts as a change. --match
needs a broker that has SCAN.

After a lost connection, watch connects again and prints the value of each key (resync)
and the continuity: proven (no change was missed), lost (a change was missed) or unknown.
Unless it is proven, a gap event comes first. watch tries to connect until it is
interrupted, or until it has had no connection for --retry-for.

With --field PATH, watch prints an event only when that field of a JSON value changes: the
old and the new value of the field. A PATH is .config.mode, .list[2] or .config["odd
name"]; a dot is the whole value. In a missing key, or in a value that is not JSON, the
field is missing. -n counts these changes, and --until tests the field: set means that it
exists, and value=V that it is the string V, or V as JSON. The raw form has the old and
the new JSON in place of the value, or - for a missing field.

With CMD, run CMD for each event, one at a time, with the event as JSON on its standard
input and SSCLI_EVENT_OP, SSCLI_EVENT_KEY and SSCLI_EVENT_VERSION in its environment. If
the exit code of CMD is not 0, the watch ends with that exit code. Ctrl-Z stops CMD and
the watch, and fg continues both.`,
		Example: "  sscli watch setpoint\n  sscli watch ready --until set --for 60s\n  sscli watch config -- ./reload.sh\n" +
			"  sscli watch --match 'jobs/*' --rescan 1s",
		Annotations:       map[string]string{app.RunsCommand: ""},
		ValidArgsFunction: complete.Keys(a, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, command := args, []string(nil)
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				keys, command = args[:n], args[n:]
				if len(command) == 0 {
					return fault.Usagef("nothing after --: expected watch KEY... -- CMD...")
				}
			}
			return run(cmd.Context(), a, f, keys, command)
		},
	}
	fs := cmd.Flags()
	fs.IntVarP(&f.count, "count", "n", 0, "end after `COUNT` changes (0: no limit); exit code 1 if --until was not met")
	fs.Var(f.forDur.Least(usage.Positive), "for", "end after `DURATION`; exit code 1 if --until was not met")
	fs.Var(&f.until, "until", "end when `CONDITION` holds: a key exists (set), is missing (delete), or has a value (value=V)")
	fs.BoolVar(&f.noInitial, "no-initial", false, "print changes only, and let only changes count for --until")
	fs.BoolVar(&f.failOnGap, "fail-on-gap", false, "end with exit code 10 when continuity is not proven")
	fs.BoolVar(&f.keepGoing, "keep-going", false, "continue when CMD exits with a code other than 0")
	fs.IntVar(&f.buffer, "buffer", client.DefaultBuffer, "hold up to `N` changes for a slow reader; more end the watch with exit code 10")
	fs.Var(&f.field, "field", "print only changes of the field at `PATH` in JSON values, such as .config.mode")
	usage.BindShow(fs, &f.show)
	fs.Var(f.audit.Least(usage.Positive), "audit", "renew the watch and compare every key at this `INTERVAL`")
	fs.Var(&f.match, "match", "also watch the keys that match `PATTERN`, and new ones as they are created")
	fs.Var(f.rescan.Least(usage.Positive), "rescan", "with --match: look for further keys at this `INTERVAL` (default 5s)")
	f.keysFrom.Bind(fs)
	return cmd
}

func (f flags) options() (o client.WatchOptions, err error) {
	if f.count < 0 || f.buffer < 1 {
		return o, fault.Usagef("-n %d --buffer %d: expected -n of 0 or more and --buffer of 1 or more", f.count, f.buffer)
	}
	if f.rescan.Given() && f.match == "" {
		return o, fault.Usagef("--rescan without --match: it looks for keys that match a pattern")
	}
	o.Audit, o.Rescan, o.Buffer, o.Match, o.Ready = f.audit.Duration, f.rescan.Duration, f.buffer, string(f.match), f.showsReady() || f.forDur.Given()
	return o, nil
}

// showsReady reports whether the output says when the watch has read its keys.
func (f flags) showsReady() bool { return f.match != "" || f.keysFrom.Given() }

// A condition reports whether an event meets --until.
type condition func(client.Event) bool

// parseUntil parses --until. field reports whether the value of an event is the JSON of a field.
func parseUntil(text string, field bool) (condition, error) {
	exists := func(e client.Event) bool { return e.HasValue || e.Kind == client.EventSet }
	value, isValue := strings.CutPrefix(text, "value=")
	switch {
	case text == "":
		return func(client.Event) bool { return false }, nil
	case text == "set":
		return exists, nil
	case text == "delete":
		return func(e client.Event) bool { return !exists(e) }, nil
	case isValue && field:
		want, _ := jsonfield.Parse([]byte(value))
		return func(e client.Event) bool {
			now, _ := jsonfield.Parse(e.Value)
			return e.HasValue && (now.Text() == value || jsonfield.Equal(now, want))
		}, nil
	case isValue:
		return func(e client.Event) bool { return e.HasValue && string(e.Value) == value }, nil
	}
	return nil, fault.Usagef("--until %.64q: expected set, delete or value=V", text)
}

func run(ctx context.Context, a *app.App, f flags, keys, command []string) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	options.RetryFor = a.Settings.RetryFor
	until, err := parseUntil(string(f.until), f.field != "")
	if err != nil {
		return err
	}
	if f.keysFrom.Given() {
		read := func(name, what, form string) (string, error) { return a.Read(ctx, name, what+form) }
		if keys, err = f.keysFrom.Keys(keys, read); err != nil {
			return err
		}
	}
	if err := usage.CheckShow(f.show, a.Output); err != nil {
		return err
	}
	field, err := newFieldView(a, string(f.field))
	if err != nil {
		return err
	}
	switch {
	case len(keys) > 0 || f.match != "":
	case f.keysFrom.Given():
		return fault.Usagef("--keys-from: the list is empty")
	default:
		return fault.Usagef("no key: expected watch KEY... or --match PATTERN")
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	a.RememberKey(keys...)
	v := viewer{app: a, outage: app.Outage{Notify: a.Notify}, f: f, field: field, until: until, command: command}
	return a.WithSession(ctx, func(s *client.Session, _ client.Options) error {
		return v.watch(ctx, s, keys, options, f.forDur.Duration)
	})
}

// watch shows the events of keys until the watch ends. forDur is the value of --for, or 0 without
// --for.
func (v *viewer) watch(ctx context.Context, s *client.Session, keys []string, options client.WatchOptions, forDur time.Duration) error {
	a := v.app
	ctx, stop := terminal.UntilClosed(ctx, a.Stdout.File)
	defer stop()
	w, err := s.Watch(ctx, keys, options)
	if unlisted, ok := errors.AsType[*client.ScanError](err); ok {
		err = fault.DescribeScan(client.Scan(unlisted.Pattern, nil), unlisted.Err)
	}
	if err == nil {
		if forDur > 0 {
			var cancel context.CancelCauseFunc
			ctx, cancel = context.WithCancelCause(ctx)
			defer cancel(nil)
			v.startFor = sync.OnceFunc(func() { time.AfterFunc(forDur, func() { cancel(endFor) }) })
		}
		defer app.CollectLess()()
		var rows []format.Row
		v.runner = process.NewRunner()
		defer v.runner.Close()
		for _, key := range keys[:min(len(keys), 1000)] {
			rows = append(rows, format.Event{Op: string(client.EventInitial), Key: key})
		}
		a.Out.Measure(rows...) // so that the columns of the keys are aligned
		err = v.run(ctx, w)
		if closed := w.Close(); closed != nil {
			a.Detail("the store was not told that the watch has ended: " + closed.Error())
		}
	}
	if errors.Is(err, terminal.ErrClosed) {
		return fault.Output(err)
	}
	return err
}

type viewer struct {
	app      *app.App
	f        flags
	field    *fieldView // nil without --field
	until    condition
	command  []string
	runner   *process.Runner
	initial  int    // keys that the watch began with
	startFor func() // starts the time of --for; nil = no limit
	changes  int
	refused  error // why the store refused to watch a key; the first such error
	outage   app.Outage
	result   format.Event // reused for each event
}

// run shows events until the watch ends, and prints the reason for the end.
func (v *viewer) run(ctx context.Context, w *client.Watch) error {
	err := v.loop(ctx, w)
	if errors.Is(err, terminal.ErrClosed) {
		return err
	}
	reason := endReason(err)
	if e, ok := errors.AsType[end](err); ok {
		err = v.refused
		if err == nil && e != endUntil && v.f.until != "" {
			err = fault.ErrNo
		}
	}
	if len(v.command) == 0 {
		err = cmp.Or(err, v.app.Emit(format.End{Reason: reason, Events: v.changes, Time: time.Now()}))
	}
	return err
}

// loop shows events until the watch ends, and returns the reason as an error.
func (v *viewer) loop(ctx context.Context, w *client.Watch) error {
	for {
		if !w.Ready() { // no event is waiting: print the earlier events with a single write
			if err := v.app.Flush(); err != nil {
				return err
			}
		}
		e, err := v.outage.Next(ctx, w, v.app.Flush)
		if err != nil {
			return err
		}
		switch e.Kind {
		case client.EventOther, client.EventError:
			if err := v.app.Flush(); err != nil { // print earlier events before the warning
				return err
			}
		}
		switch e.Kind {
		case client.EventReady, client.EventDown, client.EventUnaudited:
			// The time of --for begins when all keys are watched, or when that may take any time.
			if v.startFor != nil {
				v.startFor()
			}
		}
		switch e.Kind {
		case client.EventDown, client.EventUp:
			continue
		case client.EventReady:
			if len(v.command) == 0 && v.f.showsReady() {
				if err := v.app.Queue(format.Ready{Keys: v.initial, Time: e.Time}); err != nil {
					return err
				}
			}
			continue
		case client.EventError:
			v.app.Warn(fmt.Sprintf("%v; the other keys are still watched", e.Err))
			if v.refused == nil {
				v.refused = e.Err
			}
		case client.EventInitial:
			const many = 100_000
			if v.initial++; v.initial == many {
				app.CollectMore() // until the end of CollectLess
			}
			if !e.HasValue {
				v.app.NotePattern(e.Key, suggest.Try("`watch --match PATTERN`"))
			}
		case client.EventFound:
			v.app.RememberKey(e.Key)
		}
		if err := v.handle(e); err != nil {
			return err
		}
	}
}

// handle shows an event, and returns an error if the event ends the watch.
func (v *viewer) handle(e client.Event) error {
	checked, shown := e, format.FieldChange{} // checked is the event for --until
	if v.field != nil {
		var isNew bool
		if shown, checked, isNew = v.field.compare(e); !isNew {
			return nil
		}
	}
	if err := v.show(e, shown); err != nil {
		return err
	}
	change := e.Kind == client.EventFound || e.Kind == client.EventSet || e.Kind == client.EventDelete || e.Kind == client.EventOther
	if change {
		v.changes++
	}
	switch {
	case e.Kind == client.EventGap:
		if v.f.failOnGap {
			return fault.ErrGap
		}
	case e.Kind == client.EventError, e.Kind == client.EventUnaudited:
	case checked.Kind != client.EventOther && (change || !v.f.noInitial) && v.until(checked):
		return endUntil
	case v.f.count > 0 && v.changes >= v.f.count:
		return endCount
	}
	return nil
}

func endReason(err error) string {
	if e, ok := errors.AsType[end](err); ok {
		return string(e)
	}
	switch {
	case errors.Is(err, fault.ErrGap):
		return "gap"
	case errors.Is(err, client.ErrOverflow):
		return "overflow"
	case fault.IsA[*signals.Interrupted](err):
		return "interrupted"
	case fault.IsA[*fault.ExitError](err):
		return "command"
	}
	return "error"
}

// show prints an event, or runs the command for it. field says how the field of --field changed.
func (v *viewer) show(e client.Event, field format.FieldChange) error {
	if e.Kind == client.EventInitial && v.f.noInitial {
		return nil
	}
	if e.Kind == client.EventOther {
		v.app.Warn(fmt.Sprintf("a notification for %s says %s, which sscli does not know", format.Brief(e.Key), format.Brief(e.Word)))
	}
	v.result = format.Event{
		Op: string(e.Kind), Key: e.Key, Version: e.Version, Time: e.Time,
		Value: e.Value, HasValue: e.HasValue, Word: e.Word,
		Continuity: string(e.Continuity), From: e.From, To: e.To, Show: v.f.show, Field: field,
	}
	if e.Kind == client.EventError || e.Kind == client.EventUnaudited {
		v.result.Message = fault.Message(e.Err)
	}
	if len(v.command) == 0 {
		return v.app.Queue(&v.result)
	}
	return v.exec(v.result)
}

func (v *viewer) exec(e format.Event) error {
	var line bytes.Buffer
	p, err := format.New(&line, format.Options{Output: "json"})
	if err != nil {
		return err
	}
	if err := p.Print(e); err != nil {
		return err
	}
	key := e.Key
	if strings.Contains(key, "\x00") {
		key = format.Escape(key) // an environment variable cannot hold a NUL
	}
	text := ""
	if !e.Version.IsZero() {
		text = e.Version.String()
	}
	code, err := v.runner.Run(process.Command{
		Args: v.command,
		Env: process.Environ(map[string]string{
			"SSCLI_EVENT_OP": e.Op, "SSCLI_EVENT_KEY": key, "SSCLI_EVENT_VERSION": text,
		}),
		Input: line.Bytes(),
	})
	if err != nil || code == 0 {
		return err
	}
	if v.f.keepGoing {
		v.app.Warn(fmt.Sprintf("%s ended with exit code %d", format.Brief(v.command[0]), code))
		return nil
	}
	return &fault.ExitError{Code: code}
}
