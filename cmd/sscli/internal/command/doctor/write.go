package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// scratchTTL is the TTL of the keys that `doctor --write` writes.
const scratchTTL = time.Minute

func (c *checkup) key(name string) string {
	key := c.prefix + name
	c.keys = append(c.keys, key)
	return key
}

// deleteKeys deletes the scratch keys, even after a signal.
func (c *checkup) deleteKeys(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(c.o.Timeout, 5*time.Second))
	defer cancel()
	var left []string
	for _, key := range c.keys {
		// A client that may not delete could not write either: then nothing is left.
		if _, err := c.s.Del(ctx, key); err != nil && !errors.Is(err, client.ErrNotAuthorized) {
			left = append(left, key)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return c.print(format.Check{
		Name: "cleaning up", Status: format.Warn,
		Message: fmt.Sprintf("some scratch keys may remain, and expire within %v: %s", scratchTTL, strings.Join(left, ", ")),
	})
}

// write checks the results of SET, GET and VDEL, and of the conditions NX and NEX.
func (c *checkup) write(ctx context.Context) error {
	const value, other = "\x00\r\n\xff", "other"
	key := c.key("write")
	began := time.Now()
	set := func(value string, condition client.Condition) client.Command {
		return client.Set(key, []byte(value), client.SetOptions{Condition: condition, TTL: scratchTTL})
	}
	vdel := func(value string) client.Command { return client.VDel(key, []byte(value)) }
	applied := func(r client.Result) bool { return r.(client.SetResult).Applied }
	notApplied := func(r client.Result) bool { return !applied(r) }
	steps := []struct {
		command client.Command
		want    string                   // the expected reply, for the error message
		fits    func(client.Result) bool // reports whether the reply is the expected one
	}{
		{set(value, client.NX), "OK", applied},
		{client.Get(key), "the value", func(r client.Result) bool { g := r.(client.GetResult); return g.Found && string(g.Value) == value }},
		{vdel(other), "-1", func(r client.Result) bool { v := r.(client.VDelResult); return v.Found && !v.Deleted }},
		{set(other, client.NEX), "-1", notApplied},
		{set(other, client.NX), "-1", notApplied},
		{vdel(value), "1", func(r client.Result) bool { return r.(client.VDelResult).Deleted }},
		{client.Get(key), "nothing", func(r client.Result) bool { return !r.(client.GetResult).Found }},
	}
	for _, step := range steps {
		reply, err := c.s.Do(ctx, step.command)
		if err == nil && !step.fits(reply) {
			err = &client.ReplyError{Err: fmt.Errorf("expected %s", step.want)}
		}
		if err != nil {
			return c.fail(ctx, "write", fault.Describe(step.command, err))
		}
		if set, ok := reply.(client.SetResult); ok && !set.Applied {
			c.refusal, _ = c.recorder.last()
		}
	}
	return c.pass("write", time.Since(began), "set, get and vdel, and the conditions NX and NEX, work")
}

// notify checks that the store sends notifications, and measures how long one takes.
func (c *checkup) notify(ctx context.Context) error {
	key := c.key("notify")
	limited, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	w, err := c.s.Watch(limited, []string{key})
	if err != nil {
		return c.fail(ctx, "notify", err)
	}
	defer func() { _ = w.Close() }()
	began := time.Now()
	if _, err := c.s.Set(limited, key, nil, client.SetOptions{TTL: scratchTTL}); err != nil {
		return c.fail(ctx, "notify", fault.Describe(client.Set(key, ""), err))
	}
	if err := next(limited, w, client.EventSet); err != nil {
		return c.fail(ctx, "notify", fmt.Errorf("waiting for the notification of a set: %w", err))
	}
	took := time.Since(began)
	if _, err := c.s.Del(limited, key); err != nil {
		return c.fail(ctx, "notify", fault.Describe(client.Del(key), err))
	}
	if err := next(limited, w, client.EventDelete); err != nil {
		return c.fail(ctx, "notify", fmt.Errorf("waiting for the notification of a deletion: %w", err))
	}
	_, c.deletion = c.recorder.last()
	return c.pass("notify", took, "the store sends a notification of a set and of a deletion")
}

// next waits for the next event of this kind, and skips all others.
func next(ctx context.Context, w *client.Watch, kind client.EventKind) error {
	for {
		e, err := w.Next(ctx)
		if err != nil || e.Kind == kind {
			return err
		}
	}
}

func (c *checkup) scan(ctx context.Context) error {
	command := client.Call([]string{wire.VerbScan, c.prefix + "*"})
	_, err := c.s.Do(ctx, command)
	refused, isStore := errors.AsType[*wire.StoreError](err)
	switch {
	case isStore && refused.Kind() == wire.ErrorUnknownCommand:
		c.unknown, _ = c.recorder.last()
		return c.skip("scan", "this broker has no SCAN, so keys cannot be listed")
	case err != nil:
		f, _ := c.a.FaultOf(fault.Describe(command, err))
		return c.print(format.Check{Name: "scan", Status: format.Warn, Message: f.Text(), Hint: f.Hint.String()})
	}
	return c.pass("scan", 0, "this broker has SCAN, so keys can be listed")
}

// dialect shows which form the broker uses in each case that the published protocol leaves open, or
// describes differently from the SDKs (protocol.md 2.3, 2.6, 3.1).
func (c *checkup) dialect(context.Context) error {
	check := format.Check{Name: "dialect", Status: format.Pass, Message: "the forms that this broker uses where the published protocol leaves a choice"}
	add := func(name, value string) { check.Facts = append(check.Facts, format.Fact{Name: name, Value: value}) }
	add("condition not met", fmt.Sprintf("%q", c.refusal.Payload))
	if words, err := wire.ParseRequest(c.deletion.Payload); err == nil && len(words) > 1 {
		add("deletion", string(words[1]))
	}
	property := func(name string, m mqtt.Message, property string) {
		value, ok := m.Property(property)
		if !ok {
			value = "none"
		}
		add(name, value)
	}
	property("version of a deletion", c.deletion, wire.PropTimestamp)
	if version, ok := c.refusal.Property(wire.PropTimestamp); ok {
		add("version", version)
	}
	property(wire.PropStatus, c.refusal, wire.PropStatus)
	if c.unknown.Payload != nil {
		add("unknown verb", fmt.Sprintf("%q", c.unknown.Payload))
	}
	return c.print(check)
}
