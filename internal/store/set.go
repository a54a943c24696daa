package store

import (
	"bytes"
	"math"
	"time"

	"github.com/sscli/sscli/internal/wire"
)

type setOptions struct {
	nx, nex bool
	px      time.Duration // 0 = no PX
}

// setOptions parses the options of a SET (protocol.md 2.2). It returns the text of the refusal, or "". The
// options may come in any order. NX with NEX, or a repeated option, is refused as a syntax error (assumed).
// A value after NEX, which the table in the published protocol shows, is refused as a wrong number of
// arguments.
func (s *Store) setOptions(words [][]byte) (o setOptions, text string) {
	for i := 0; i < len(words); i++ {
		switch option := string(cut(s.word(words[i]), maxVerb+1)); option {
		case wire.OptionNX, wire.OptionNEX:
			if o.nx || o.nex {
				return o, wire.TextSyntax
			}
			o.nx, o.nex = option == wire.OptionNX, option == wire.OptionNEX
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

// maxPX is the maximum number of digits of PX. With a large value, the store keeps the whole request in memory.
const maxPX = 64

// parsePX parses a whole number of milliseconds, at least 1. It reduces a number that exceeds the maximum
// of time.Duration, 292 years, to that maximum.
func parsePX(w []byte) (time.Duration, bool) {
	ms, rest, ok := cutDigits(w)
	if !ok || len(w) > maxPX || len(rest) > 0 || ms == 0 || ms > math.MaxInt64 {
		return 0, false
	}
	return time.Duration(min(ms, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond, true
}

func (s *Store) set(c *call) Response {
	if text := c.checkWords(3, 6); text != "" {
		return s.refuse(c, text)
	}
	opts, text := s.setOptions(c.words[3:])
	if text != "" {
		return s.refuse(c, text)
	}
	if text := s.check(c, true, true); text != "" {
		return s.refuse(c, text)
	}
	if len(c.words[2]) > maxValue {
		return s.refuse(c, textLongValue)
	}
	r := s.find(c.key)
	w := Write{ClientID: c.ClientID, Cause: CauseSet, Key: c.key, Value: c.words[2], Persist: c.Persist}
	if opts.px > 0 {
		w.Cause, w.Expires = CauseSetPX, s.now.Add(opts.px)
	}
	if r != 0 {
		e := s.index.entry(r)
		text, unmet := s.checkFence(c.fence, r), opts.unmet(e.Value(), w.Value)
		switch {
		case unmet != "" && (text == "" || s.opts.Variants.ConditionBeforeFence):
			return s.count(c, -1, unmet).with(e.Version())
		case text != "":
			return s.refuse(c, text)
		}
		if opts.px == 0 && s.opts.Variants.KeepTTL {
			w.Expires = e.Expires()
		}
	}
	if s.full(growth{}, s.index.arena.size(r), len(c.key)+len(c.words[2])) {
		return s.refuse(c, wire.TextQuota)
	}
	e := s.put(r, w, c.fence.text, c.timestamp)
	if r == 0 || !opts.nex || !s.opts.Variants.SilentRenewal {
		s.notifySet(e)
	}
	return s.ok(c, opts.nexReason(r == 0)).with(e.Version())
}

// unmet returns why NX or NEX prevents the SET of an existing key, or "" if neither does. old is the key's
// present value.
func (o setOptions) unmet(old, value []byte) string {
	switch {
	case o.nx:
		return causeExists
	case o.nex && !bytes.Equal(old, value):
		return causeOtherValue
	default:
		return ""
	}
}

// nexReason returns why a SET with NEX was applied, or "" without NEX. For a lock, the reason distinguishes
// an acquisition from an extension.
func (o setOptions) nexReason(isNew bool) string {
	switch {
	case !o.nex:
		return ""
	case isNew:
		return causeWasMissing
	default:
		return causeSameValue
	}
}
