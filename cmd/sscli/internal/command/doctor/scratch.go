package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/mqtt"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// scratchPrefix begins the keys that `doctor --write` writes. They expire after scratchTTL.
const (
	scratchPrefix = "sscli/doctor/"
	scratchTTL    = time.Minute
)

// A scratch is the part of a checkup that writes scratch keys.
type scratch struct {
	*checkup
	prefix string
	keys   []string // the keys that may have been written

	refusal  mqtt.Message // the reply to a write whose condition was not met
	deletion mqtt.Message // the notification of a deletion
	unknown  mqtt.Message // the reply to an unknown verb; zero if the store knows them all
}

// scratch runs the checks that write, and then deletes their keys in any case.
func (c *checkup) scratch(ctx context.Context) error {
	s := &scratch{checkup: c, prefix: scratchPrefix + strings.ToLower(rand.Text()[:8]) + "/"}
	err := s.climb(ctx)
	if left := s.clean(ctx); err == nil {
		err = left
	}
	return err
}

// climb runs the checks that write, to the first that fails.
func (s *scratch) climb(ctx context.Context) error {
	for _, rung := range []func(context.Context) error{s.clock, s.write, s.notify, s.scan} {
		if err := rung(ctx); err != nil {
			return err
		}
	}
	return s.dialect()
}

// key returns a key that clean deletes.
func (s *scratch) key(name string) string {
	key := s.prefix + name
	s.keys = append(s.keys, key)
	return key
}

// clean deletes the keys, also after a signal.
func (s *scratch) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(s.o.Timeout, 5*time.Second))
	defer cancel()
	var left []string
	for _, key := range s.keys {
		if _, err := s.s.Del(ctx, key, client.WriteOptions{}); err != nil {
			left = append(left, key)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return s.print(format.Check{
		Name: "cleaning up", Status: format.Warn,
		Message: fmt.Sprintf("some scratch keys may be left, and expire within %v: %s", scratchTTL, strings.Join(left, ", ")),
	})
}

// write checks that writes and their conditions do what they should.
func (s *scratch) write(ctx context.Context) error {
	const value, other = "\x00\r\n\xff", "other"
	key := s.key("write")
	began := time.Now()
	steps := []struct {
		c    client.Command
		want string // for the error if the reply does not fit
		fits func(client.Result) bool
	}{
		{client.Set(key, []byte(value), client.SetOptions{Condition: client.NX, TTL: scratchTTL}), "OK", func(r client.Result) bool { return r.(client.SetResult).Applied }},
		{client.Get(key), "the value", func(r client.Result) bool { g := r.(client.GetResult); return g.Found && string(g.Value) == value }},
		{client.VDel(key, []byte(other), client.WriteOptions{}), "-1", func(r client.Result) bool { v := r.(client.VDelResult); return v.Found && !v.Deleted }},
		{client.Set(key, []byte(other), client.SetOptions{Condition: client.NEX, TTL: scratchTTL}), "-1", func(r client.Result) bool { return !r.(client.SetResult).Applied }},
		{client.Set(key, []byte(other), client.SetOptions{Condition: client.NX, TTL: scratchTTL}), "-1", func(r client.Result) bool { return !r.(client.SetResult).Applied }},
		{client.VDel(key, []byte(value), client.WriteOptions{}), "1", func(r client.Result) bool { return r.(client.VDelResult).Deleted }},
		{client.Get(key), "nothing", func(r client.Result) bool { return !r.(client.GetResult).Found }},
	}
	for _, step := range steps {
		reply, err := s.s.Do(ctx, step.c)
		if err == nil && !step.fits(reply) {
			err = &client.AnswerError{Err: fmt.Errorf("want %s", step.want)}
		}
		if err != nil {
			return s.fail(ctx, "write", fault.Describe(step.c, err))
		}
		if set, ok := reply.(client.SetResult); ok && !set.Applied {
			s.refusal = s.recorder.lastReply()
		}
	}
	return s.print(format.Check{
		Name: "write", Status: format.Pass, Took: time.Since(began).Round(time.Microsecond),
		Message: "set, get and vdel with NX and NEX do what they should",
	})
}

// notify checks that changes are announced, and measures how long that takes.
func (s *scratch) notify(ctx context.Context) error {
	key := s.key("notify")
	limited, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	w, err := s.s.Watch(limited, []string{key}, client.WatchOptions{})
	if err != nil {
		return s.fail(ctx, "notify", err)
	}
	defer w.Close() // an error is harmless: the watch ends with the connection
	began := time.Now()
	if _, err := s.s.Set(limited, key, nil, client.SetOptions{TTL: scratchTTL}); err != nil {
		return s.fail(ctx, "notify", fault.Describe(client.Set(key, nil, client.SetOptions{}), err))
	}
	if err := next(limited, w, client.EventSet); err != nil {
		return s.fail(ctx, "notify", fmt.Errorf("the announcement of a set: %w", err))
	}
	took := time.Since(began)
	if _, err := s.s.Del(limited, key, client.WriteOptions{}); err != nil {
		return s.fail(ctx, "notify", fault.Describe(client.Del(key, client.WriteOptions{}), err))
	}
	if err := next(limited, w, client.EventDelete); err != nil {
		return s.fail(ctx, "notify", fmt.Errorf("the announcement of a deletion: %w", err))
	}
	s.deletion = s.recorder.lastNotice()
	return s.print(format.Check{
		Name: "notify", Status: format.Pass, Took: took.Round(time.Microsecond),
		Message: "a set and a deletion are announced",
	})
}

// next waits for an event of a kind.
func next(ctx context.Context, w *client.Watch, kind client.EventKind) error {
	for {
		e, err := w.Next(ctx)
		if err != nil || e.Kind == kind {
			return err
		}
	}
}

// scan checks whether the broker has SCAN.
func (s *scratch) scan(ctx context.Context) error {
	c := client.Call([]string{wire.VerbScan, s.prefix + "*"}, client.WriteOptions{})
	_, err := s.s.Do(ctx, c)
	refused, isStore := errors.AsType[*wire.StoreError](err)
	switch {
	case isStore && refused.Kind() == wire.ErrorUnknownCommand:
		s.unknown = s.recorder.lastReply()
		return s.skip("scan", "this broker has no SCAN, so keys cannot be listed")
	case err != nil:
		f, _ := s.a.Explain(fault.Describe(c, err))
		return s.print(format.Check{Name: "scan", Status: format.Warn, Message: f.Message, Hint: f.Hint})
	}
	return s.print(format.Check{Name: "scan", Status: format.Pass, Message: "this broker has SCAN: keys can be listed"})
}

// dialect shows which forms the broker uses where the published protocol and the SDKs differ or
// say nothing (protocol.md 2.3, 2.6, 3.1).
func (s *scratch) dialect() error {
	check := format.Check{Name: "dialect", Status: format.Pass, Message: "how this broker writes what the published protocol leaves open"}
	add := func(name, value string) { check.Facts = append(check.Facts, format.Fact{Name: name, Value: value}) }
	add("condition not met", fmt.Sprintf("%q", s.refusal.Payload))
	if words, err := wire.ParseRequest(s.deletion.Payload); err == nil && len(words) > 1 {
		add("deletion", string(words[1]))
	}
	if version, ok := s.deletion.Property(wire.PropTimestamp); ok {
		add("version of a deletion", version)
	} else {
		add("version of a deletion", "none")
	}
	if version, ok := s.refusal.Property(wire.PropTimestamp); ok {
		add("version", version)
	}
	if status, ok := s.refusal.Property(wire.PropStatus); ok {
		add(wire.PropStatus, status)
	} else {
		add(wire.PropStatus, "none")
	}
	if s.unknown.Payload != nil {
		add("unknown verb", fmt.Sprintf("%q", s.unknown.Payload))
	}
	return s.print(check)
}
