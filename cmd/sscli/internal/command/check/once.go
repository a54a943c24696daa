package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// once looks at all brokers at the same time, and prints the verdicts.
func (f flags) once(ctx context.Context, a *app.App, views []*view, apps []*app.App) (err error) {
	var looks sync.WaitGroup
	wrong := make([]error, len(views))
	for i, v := range views {
		looks.Go(func() { wrong[i] = v.look(ctx, apps[i], f.noWrite) })
	}
	looks.Wait()
	if err := errors.Join(wrong...); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	all, now, forgot := f.remembered(ctx, views)
	if ctx.Err() != nil && forgot != nil {
		return context.Cause(ctx)
	}
	if forgot != nil { // hides no verdict
		forgot = &fault.UsageError{Err: fmt.Errorf("--state: %w", forgot)}
	}
	code := 0
	for _, v := range views {
		code = cmp.Or(code, v.broker.code)
	}
	switch a.Form {
	case app.Plugin:
		line, state := plugin(all, now, forgot)
		if err := a.Print(line + "\n"); err != nil {
			state = worse(state, unknown) // nobody reads it, but the exit code says it, too
		}
		return &fault.ExitError{Code: int(state)}
	case prometheus:
		return cmp.Or(f.metrics(a, expose(views, a.Build.Version, false, now)), forgot)
	}
	err = report(a, all, code, now)
	switch {
	case forgot == nil:
		return err
	case err == nil || errors.Is(err, fault.ErrNo):
		return forgot
	}
	a.Warn(forgot.Error()) // err has the exit code of a broker that does not answer
	return err
}

// remembered returns the verdicts on what the views saw and what earlier runs put into the file of --state, which then
// has this run, too. err says why the file was not read or not written. If it was not read, it stays as it is, and the
// checks that need it are unknown.
func (f flags) remembered(ctx context.Context, views []*view) (all []verdict, now time.Time, err error) {
	past, lost := history{Checks: make(map[string]past)}, error(nil)
	if f.state != "" {
		unlock, locked := lockHistory(ctx, string(f.state))
		if err = locked; err == nil {
			defer unlock()
		}
		if past, lost = readHistory(string(f.state)); lost != nil {
			err = cmp.Or(err, lost)
		}
	}
	now = time.Now()
	for _, v := range views {
		all = append(all, v.remember(past, lost, now)...)
	}
	if f.state != "" && err == nil {
		err = past.write(string(f.state))
	}
	return all, now, err
}

// remember returns the verdicts on what the view saw and what a history has, and records both in it. lost is why the
// history is not that of earlier runs; nil = it is.
func (v *view) remember(past history, lost error, now time.Time) []verdict {
	v.broker.lost = lost
	for s, k := range v.seen {
		if k.read && k.err == nil {
			past.before(s, k, now)
			past.keep(s, k, now)
		}
	}
	verdicts := v.verdicts(now)
	for i, s := range v.specs {
		past.judged(&verdicts[i], now)
		past.forget(s, v.found[s])
	}
	return verdicts
}

// metrics prints metrics, or writes them to a file.
func (f flags) metrics(a *app.App, text string) error {
	if f.out == "" || f.out == "-" {
		return a.Print(text)
	}
	if err := files.Write(string(f.out), []byte(text), 0o644); err != nil {
		return &fault.UsageError{Err: fmt.Errorf("--outfile: %w", err)}
	}
	return nil
}

// report prints verdicts as results. code is the exit code if a broker does not answer, or 0.
func report(a *app.App, all []verdict, code int, now time.Time) error {
	var sum format.CheckSummary
	for i := range all {
		v := &all[i]
		c := format.Check{Name: v.spec.describe(), Message: v.message(now)}
		switch v.state {
		case ok:
			c.Status = format.Pass
			sum.Passed++
		case warning:
			c.Status = format.Warn
			sum.Warned++
		case critical:
			c.Status = format.Fail
			sum.Failed++
		case unknown:
			c.Status = format.Skip
			sum.Skipped++
		}
		for _, m := range v.measures {
			c.Facts = append(c.Facts, m.fact())
		}
		if a.Output == "human" {
			c.Facts = nil // the message has them
		}
		if err := a.Emit(c); err != nil {
			return err
		}
	}
	if len(all) > 1 {
		if err := a.Emit(sum); err != nil {
			return err
		}
	}
	switch {
	case code != 0:
		return &fault.ExitError{Code: code}
	case sum.Passed < len(all):
		return fault.ErrNo
	}
	return nil
}

// look reads a broker and the keys of its checks once. A broker that does not answer is no error.
func (v *view) look(ctx context.Context, a *app.App, noWrite bool) error {
	return a.WithBroker(func(o client.Options) error {
		v.watchCertificates(&o)
		err := a.Connect(ctx, o, func(s *client.Session) error {
			if !v.probe(ctx, a, s, o.Timeout) {
				return nil
			}
			v.readToken(o)
			v.measureClock(ctx, a, s, noWrite)
			v.readKeys(ctx, s, v.readers)
			v.countKeys(ctx, s)
			return nil
		})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			v.fail(a, err)
		}
		return nil
	})
}
