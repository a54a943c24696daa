package emulator

import (
	"bytes"
	"container/heap"
	"math"
	"strconv"
	"time"

	"github.com/sscli/sscli/client/wire"
)

// setOptions are the words behind the value of a SET.
type setOptions struct {
	condition string        // NX, NEX or none
	px        time.Duration // 0: none was given
}

// setOptions reads the options in any order (protocol.md 2.2). NX with NEX, and
// any option twice, is a syntax error (assumed); a value behind NEX, as the
// document's table has it, is one word too many.
func (e *Engine) setOptions(words [][]byte) (setOptions, string) {
	var o setOptions
	for i := 0; i < len(words); i++ {
		switch w := e.word(words[i]); w {
		case wire.OptionNX, wire.OptionNEX:
			if o.condition != "" {
				return o, wire.TextSyntax
			}
			o.condition = w
		case wire.OptionPX:
			i++
			if o.px != 0 || i == len(words) {
				return o, wire.TextSyntax
			}
			var ok bool
			if o.px, ok = parsePX(words[i]); !ok {
				return o, wire.TextSyntax
			}
		default:
			if i > 0 && e.word(words[i-1]) == wire.OptionNEX {
				return o, wire.TextWrongArguments
			}
			return o, wire.TextSyntax
		}
	}
	return o, ""
}

// parsePX reads whole milliseconds, at least one. What does not fit a duration of
// Go, 292 years, is cut to it: no test outlives that.
func parsePX(w []byte) (time.Duration, bool) {
	for _, c := range w {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	ms, err := strconv.ParseInt(string(w), 10, 64)
	if err != nil || ms == 0 {
		return 0, false
	}
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond, true
}

func (e *Engine) set(c *call) Response {
	if text := c.arguments(3, 6); text != "" {
		return e.refuse(text)
	}
	opts, text := e.setOptions(c.words[3:])
	if text != "" {
		return e.refuse(text)
	}
	if text := e.access(c, true); text != "" {
		return e.refuse(text)
	}
	if text := e.stamps(c, true, true); text != "" {
		return e.refuse(text)
	}
	en, value := e.entries[c.key], bytes.Clone(c.words[2])
	same := en != nil && bytes.Equal(en.value, value)
	met := en == nil || opts.condition == "" || opts.condition == wire.OptionNEX && same
	if !met && e.opts.Variants.ConditionBeforeFence {
		return e.count(-1).with(en.version)
	}
	if text := e.guard(c, en); text != "" {
		return e.refuse(text)
	}
	if !met {
		return e.count(-1).with(en.version)
	}
	if en == nil {
		if e.opts.MaxKeys > 0 && len(e.entries) >= e.opts.MaxKeys {
			return e.refuse(wire.TextQuota)
		}
		en = &entry{key: c.key, index: -1}
		e.entries[c.key] = en
		e.sorted = nil
	}
	e.store(c, en, value, opts)
	if renewal := opts.condition == wire.OptionNEX && same; !renewal || !e.opts.Variants.SilentRenewal {
		e.notifySet(en)
	}
	return e.ok().with(en.version)
}

func (e *Engine) store(c *call, en *entry, value []byte, opts setOptions) {
	en.value = value
	en.version = e.next(c.timestamp)
	en.persist = c.Persist
	if c.fenced { // equal to the fence at least, or guard had refused it
		en.fence, en.fenced = c.fence, true
	}
	cause := CauseSet
	switch {
	case opts.px > 0:
		cause = CauseSetPX
		e.expireAt(en, e.now.Add(opts.px))
	case !e.opts.Variants.KeepTTL:
		e.expireAt(en, time.Time{})
	}
	e.record(Change{Key: en.key, Cause: cause, ClientID: c.ClientID, Value: value, Version: en.version})
}

// expireAt sets or, with the zero time, clears the key's expiry.
func (e *Engine) expireAt(en *entry, deadline time.Time) {
	if en.index >= 0 {
		heap.Remove(&e.expiries, en.index)
	}
	en.deadline = deadline
	if !deadline.IsZero() {
		heap.Push(&e.expiries, en)
	}
}
