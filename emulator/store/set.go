package store

import (
	"bytes"
	"math"
	"time"

	"github.com/sscli/sscli/client/wire"
)

// setOptions are the words after the value of a SET.
type setOptions struct {
	nx, nex bool
	px      time.Duration // 0: none was given
}

// setOptions reads the options in any order (protocol.md 2.2). NX with NEX, and
// any option twice, is a syntax error (assumed); a value after NEX, as the
// document's table has it, is one word too many.
func (s *Store) setOptions(words [][]byte) (o setOptions, text string) {
	for i := 0; i < len(words); i++ {
		switch string(s.word(words[i])) {
		case wire.OptionNX:
			if o.nx || o.nex {
				return o, wire.TextSyntax
			}
			o.nx = true
		case wire.OptionNEX:
			if o.nx || o.nex {
				return o, wire.TextSyntax
			}
			o.nex = true
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
			if i > 0 && string(s.word(words[i-1])) == wire.OptionNEX {
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
	ms, rest, ok := cutDigits(w)
	if !ok || len(rest) > 0 || ms == 0 || ms > math.MaxInt64 {
		return 0, false
	}
	return time.Duration(min(ms, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond, true
}

func (s *Store) set(c *call) Response {
	if text := c.arguments(3, 6); text != "" {
		return s.refuse(c, text)
	}
	opts, text := s.setOptions(c.words[3:])
	if text != "" {
		return s.refuse(c, text)
	}
	if text := s.access(c, true); text != "" {
		return s.refuse(c, text)
	}
	if text := s.stamps(c, true, true); text != "" {
		return s.refuse(c, text)
	}
	r, value := s.index.find(c.key), c.words[2]
	u := update{
		key: c.key, value: value, fence: c.fence.text, persist: c.Persist,
		cause: CauseSet, clientID: c.ClientID, seen: c.timestamp,
	}
	if opts.px > 0 {
		u.cause, u.deadline = CauseSetPX, deadline(s.now.Add(opts.px))
	}
	renewal := false
	if r != 0 {
		e := s.index.entry(r)
		met := !opts.nx && (!opts.nex || bytes.Equal(e.Value(), value))
		if !met && s.opts.Variants.ConditionBeforeFence {
			return s.count(c, -1).with(e.Version())
		}
		if text := s.guard(c.fence, r); text != "" {
			return s.refuse(c, text)
		}
		if !met {
			return s.count(c, -1).with(e.Version())
		}
		if opts.px == 0 && s.opts.Variants.KeepTTL {
			u.deadline = e.deadline()
		}
		renewal = opts.nex
	}
	if s.full(r) {
		return s.refuse(c, wire.TextQuota)
	}
	e := s.put(r, u)
	if !renewal || !s.opts.Variants.SilentRenewal {
		s.notifySet(e)
	}
	return s.ok(c).with(e.Version())
}
