package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/child"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/format"
)

// What ends a watch, beside its signals and errors.
var (
	errForOver    = errors.New("the time of --for is over")
	errOutputGone = errors.New("standard output was closed")
)

type watchFlags struct {
	count                int
	forDur, until        config.Text
	noInitial, failOnGap bool
	keepGoing            bool
	buffer               int
	audit, retryFor      config.Text
	keysFrom             config.Text
}

func newWatch(a *app) *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:     "watch KEY... [-- CMD...]",
		Short:   "Stream changes of keys",
		GroupID: groupStore,
		Long: `Print what each key is (initial), then each change (set, delete) as it happens, until
interrupted. Keys are watched one by one; the store knows no patterns.

After a break of the connection a resync says what each key is now, behind a gap if
events are missing or may be: continuity is proven, lost or unknown.

With CMD, run CMD for each event, one at a time, with the event as JSON on its standard
input and SSCLI_EVENT_OP, SSCLI_EVENT_KEY and SSCLI_EVENT_VERSION in its environment.`,
		Example:           "  sscli watch setpoint\n  sscli watch ready --until set --for 60s\n  sscli watch config -- ./reload.sh",
		ValidArgsFunction: a.completeKeys(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, command := args, []string(nil)
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				keys, command = args[:n], args[n:]
				if len(command) == 0 {
					return usage("nothing after --: want watch KEY... -- CMD...")
				}
			}
			return a.watch(cmd.Context(), f, unprotectAll(keys), unprotectAll(command))
		},
	}
	fs := cmd.Flags()
	fs.IntVarP(&f.count, "count", "n", 0, "end after `COUNT` changes (0: never)")
	fs.Var(&f.forDur, "for", "end after `DURATION`; exit code 1 if --until was not met")
	fs.Var(&f.until, "until", "end when `CONDITION` holds: a key is there (set), is missing (delete), or has a value (value=V)")
	fs.BoolVar(&f.noInitial, "no-initial", false, "print changes only, and let only changes count for --until")
	fs.BoolVar(&f.failOnGap, "fail-on-gap", false, "end with exit code 10 when continuity is not proven")
	fs.BoolVar(&f.keepGoing, "keep-going", false, "go on when CMD ends with an error")
	fs.IntVar(&f.buffer, "buffer", client.DefaultBuffer, "hold so many `EVENTS` for a slow reader; more end the watch with exit code 10")
	fs.Var(&f.audit, "audit", "renew the watch and compare every key at this `INTERVAL`")
	fs.Var(&f.retryFor, "retry-for", "give up when there is no connection for `DURATION` (default: never)")
	fs.Var(&f.keysFrom, "keys-from", "read further keys from `FILE`, or - for standard input: one a line, with C escapes")
	return cmd
}

// options reads what is a duration or a number.
func (f watchFlags) options() (o client.WatchOptions, forDur time.Duration, err error) {
	for _, d := range []struct {
		flag string
		text config.Text
		to   *time.Duration
	}{{"--audit", f.audit, &o.Audit}, {"--retry-for", f.retryFor, &o.RetryFor}, {"--for", f.forDur, &forDur}} {
		if d.text == "" {
			continue
		}
		if *d.to, err = config.ParseDuration(string(d.text)); err != nil || *d.to <= 0 {
			return o, 0, usage("%s %.32q: want a duration such as 500ms or 2m", d.flag, string(d.text))
		}
	}
	if f.count < 0 || f.buffer < 1 {
		return o, 0, usage("-n %d --buffer %d: want -n of 0 or more and --buffer of 1 or more", f.count, f.buffer)
	}
	o.Buffer = f.buffer
	return o, forDur, nil
}

// A condition is that of --until; nil is never met.
type condition func(client.Event) bool

func parseUntil(text string) (condition, error) {
	exists := func(e client.Event) bool { return e.HasValue || e.Kind == client.EventSet }
	value, isValue := strings.CutPrefix(text, "value=")
	switch {
	case text == "":
		return func(client.Event) bool { return false }, nil
	case text == "set":
		return exists, nil
	case text == "delete":
		return func(e client.Event) bool { return !exists(e) }, nil
	case isValue:
		return func(e client.Event) bool { return e.HasValue && string(e.Value) == value }, nil
	}
	return nil, usage("--until %.64q: want set, delete or value=V", text)
}

// keysFromFile reads keys, one a line, as the raw output writes them.
func (a *app) keysFromFile(name string) ([]string, error) {
	source := a.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, &usageError{err: err}
		}
		defer file.Close()
		source = file
	}
	var keys []string
	lines := bufio.NewReader(source)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"); line != "" {
			key, bad := format.Unescape(line)
			if bad != nil {
				return nil, usage("--keys-from: line %d: %w", n, bad)
			}
			keys = append(keys, key)
		}
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("--keys-from: %w", err)}
		}
	}
}

func (a *app) watch(ctx context.Context, f watchFlags, keys, command []string) (err error) {
	options, forDur, err := f.options()
	if err != nil {
		return err
	}
	until, err := parseUntil(string(f.until))
	if err != nil {
		return err
	}
	if f.keysFrom != "" {
		more, err := a.keysFromFile(string(f.keysFrom))
		if err != nil {
			return err
		}
		keys = append(keys, more...)
	}
	if len(keys) == 0 {
		return usage("no key: want watch KEY...")
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	o, undo, err := a.broker()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	a.saw(keys...)
	s, hangUp, err := a.dial(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hangUp()) }()

	ctx, stop := untilClosed(ctx, a.stdout)
	defer stop()
	w, err := s.Watch(ctx, keys, options)
	if err == nil {
		// It counts from when the watch is confirmed: until then the time-out does.
		if forDur > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, forDur, errForOver)
			defer cancel()
		}
		v := viewer{app: a, f: f, until: until, command: command}
		err = v.run(ctx, w)
		a.leaveWatch(w)
	}
	switch {
	case errors.Is(err, errForOver) && f.until != "":
		return errNo
	case errors.Is(err, errForOver), errors.Is(err, errOutputGone):
		return nil
	}
	return err
}

// leaveWatch takes the watch back at the store, for a moment even after a signal.
func (a *app) leaveWatch(w *client.Watch) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := w.Close(ctx); err != nil {
		a.note("the watch was not taken back: " + err.Error())
	}
}

// A viewer shows the events of a watch.
type viewer struct {
	app     *app
	f       watchFlags
	until   condition
	command []string
	changes int
	refused error // of the first key that is no longer watched
}

// run shows events until something ends the watch, and says what.
func (v *viewer) run(ctx context.Context, w *client.Watch) error {
	reason, err := v.loop(ctx, w)
	if errors.Is(err, errOutputGone) {
		return err
	}
	if v.refused != nil && (err == nil || errors.Is(err, errForOver)) {
		err = v.refused
	}
	if len(v.command) == 0 {
		if endErr := v.app.emit(format.End{Reason: reason, Events: v.changes, Time: time.Now()}); err == nil {
			err = endErr
		}
	}
	return err
}

func (v *viewer) loop(ctx context.Context, w *client.Watch) (reason string, err error) {
	for {
		// Events that are there already share a write; nothing waits for one to come.
		if !w.Ready() {
			if err := v.app.flush(); err != nil {
				return endReason(err), err
			}
		}
		e, err := w.Next(ctx)
		if err != nil {
			return endReason(err), err
		}
		if e.Kind == client.EventDown || e.Kind == client.EventUp || e.Kind == client.EventOther {
			// Before the warning.
			if err := v.app.flush(); err != nil {
				return endReason(err), err
			}
		}
		switch e.Kind {
		case client.EventError:
			if err := v.app.flush(); err != nil {
				return endReason(err), err
			}
			v.app.warn(fmt.Sprintf("%v; the other keys are still watched", e.Err), "")
			if v.refused == nil {
				v.refused = e.Err
			}
		case client.EventDown:
			v.app.warn(fmt.Sprintf("%v; connecting again", e.Err), "")
			continue
		case client.EventUp:
			v.app.warn("connected again, all keys are watched", "")
			continue
		}
		if err := v.show(e); err != nil {
			return endReason(err), err
		}
		change := e.Kind == client.EventSet || e.Kind == client.EventDelete || e.Kind == client.EventOther
		if change {
			v.changes++
		}
		switch {
		case e.Kind == client.EventGap:
			if v.f.failOnGap {
				return endReason(errGap), errGap
			}
		case e.Kind == client.EventError, e.Kind == client.EventUnaudited:
		case e.Kind != client.EventOther && (change || !v.f.noInitial) && v.until(e):
			return "until", nil
		case v.f.count > 0 && v.changes >= v.f.count:
			return "count", nil
		}
	}
}

func endReason(err error) string {
	switch {
	case errors.Is(err, errForOver):
		return "for"
	case errors.Is(err, errGap):
		return "gap"
	case errors.Is(err, client.ErrOverflow):
		return "overflow"
	}
	if _, ok := errors.AsType[*interruptError](err); ok {
		return "interrupted"
	}
	if _, ok := errors.AsType[*exitError](err); ok {
		return "command"
	}
	return "error"
}

// show prints an event, or runs the command for it.
func (v *viewer) show(e client.Event) error {
	if e.Kind == client.EventInitial && v.f.noInitial {
		return nil
	}
	if e.Kind == client.EventOther {
		v.app.warn(fmt.Sprintf("a notification for %s says %s, which sscli does not know", format.Brief(e.Key), format.Brief(e.Word)), "")
	}
	result := format.Event{
		Op: string(e.Kind), Key: e.Key, Version: version(e.Version), Time: e.Time,
		Value: e.Value, HasValue: e.HasValue, Word: e.Word,
		Continuity: string(e.Continuity), From: e.From, To: e.To,
	}
	if e.Kind == client.EventError || e.Kind == client.EventUnaudited {
		result.Message = message(e.Err)
	}
	if len(v.command) == 0 {
		return v.app.queue(result)
	}
	return v.exec(result)
}

// exec runs the command for one event.
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
		key = format.Escape(key) // an environment cannot hold it as it is
	}
	text := ""
	if e.Version != nil {
		text = e.Version.String()
	}
	code, err := child.Run(child.Command{
		Args: v.command,
		Env: environ(map[string]string{
			"SSCLI_EVENT_OP": e.Op, "SSCLI_EVENT_KEY": key, "SSCLI_EVENT_VERSION": text,
		}),
		Stdin: &line,
	})
	if err != nil || code == 0 {
		return err
	}
	if v.f.keepGoing {
		v.app.warn(fmt.Sprintf("%s ended with exit code %d", format.Brief(v.command[0]), code), "")
		return nil
	}
	return &exitError{code: code}
}
