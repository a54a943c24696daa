package format

import "strings"

// Explanation is the result of `explain`: whether a write would be refused, and why.
type Explanation struct {
	Key     string
	Found   bool
	Version Version // of the key; nil: missing, or not sent by the store

	Lock      string // empty: no lock was named
	Held      bool
	Holder    string
	LockToken Version

	Token  Version // of the write; nil: it has none
	ToKey  string  // Token compared with Version: older, equal or newer; empty: not compared
	ToLock string  // Token compared with LockToken, in the same words

	AtLeast Version // if Assumes, the oldest token that the key can have; nil: unknown

	Verdict string // passes, refused or unknown
	Rule    string // which of the store's rules decides; empty: not known
	Assumes bool   // Verdict assumes that every write of the key carries the newest token of the lock
	Why     string
	Hint    string // the next thing to do; may be empty
}

func (e Explanation) fields(o *objectWriter) {
	locked := e.Lock != ""
	o.add("op", "explain")
	o.add("key", e.Key)
	o.add("found", e.Found)
	o.add("version", e.Version)
	o.add("lock", nonEmpty(e.Lock))
	o.add("held", when(locked, e.Held))
	o.add("holder", when(locked && e.Held, e.Holder))
	o.add("lock_token", e.LockToken)
	o.add("token", e.Token)
	o.add("token_to_version", nonEmpty(e.ToKey))
	o.add("token_to_lock_token", nonEmpty(e.ToLock))
	o.add("at_least", e.AtLeast)
	o.add("verdict", e.Verdict)
	o.add("rule", nonEmpty(e.Rule))
	o.add("assumes_lock", when(locked, e.Assumes))
	o.add("why", e.Why)
	o.add("hint", nonEmpty(e.Hint))
}

func (e Explanation) human(dst []byte, s *style) []byte {
	line := func(name, text string) {
		dst = append(append(dst, name...), strings.Repeat(" ", len("verdict  ")-len(name))...)
		dst = append(append(dst, text...), '\n')
	}
	issued := func(v Version) string {
		return string(appendVersion(nil, v, "unknown")) + s.faint.Sprint("  ("+Age(s.now().Sub(v.Time()))+")")
	}
	switch {
	case !e.Found:
		line("key", s.key.Sprint(Word(e.Key))+" is missing")
	case none(e.Version):
		line("key", s.key.Sprint(Word(e.Key))+" exists, its version is unknown")
	default:
		line("key", s.key.Sprint(Word(e.Key))+" was written at "+issued(e.Version))
	}
	switch {
	case e.Lock == "":
	case !e.Held:
		line("lock", s.key.Sprint(Word(e.Lock))+" is free")
	case none(e.LockToken):
		line("lock", s.key.Sprint(Word(e.Lock))+" is held by "+Brief(e.Holder)+", its token is unknown")
	default:
		line("lock", s.key.Sprint(Word(e.Lock))+" is held by "+Brief(e.Holder)+" with the token "+issued(e.LockToken))
	}
	if none(e.Token) {
		line("token", "none")
	} else {
		line("token", issued(e.Token))
		e.compare(line)
	}
	if e.Found {
		fence := "the key's token cannot be read"
		if !none(e.AtLeast) {
			fence += "; if every write carries the newest token of the lock, at least " + string(appendVersion(nil, e.AtLeast, ""))
		}
		line("fence", fence)
	}
	verdict := e.Verdict
	if e.Verdict != "passes" {
		verdict = s.warning.Sprint(verdict)
	}
	line("verdict", verdict+": "+string(appendText(nil, e.Why)))
	if e.Hint != "" {
		dst = append(append(append(dst, "  try: "...), appendText(nil, e.Hint)...), '\n')
	}
	return dst
}

// compare prints how the token compares with the tokens of the key and of the lock.
func (e Explanation) compare(line func(name, text string)) {
	side := func(how, what string) string {
		if how == "equal" {
			return "the same as " + what
		}
		return how + " than " + what
	}
	var parts []string
	if e.ToKey != "" {
		parts = append(parts, side(e.ToKey, "the key's version"))
	}
	if e.ToLock != "" {
		parts = append(parts, side(e.ToLock, "the token of the lock"))
	}
	if len(parts) > 0 {
		line("", strings.Join(parts, ", "))
	}
}

// raw writes the verdict, the rule, the version of the key, the token of the lock and the
// oldest token that the key can have; `-` for unknown ones.
func (e Explanation) raw(dst []byte) []byte {
	return appendRecord(dst, e.Verdict, textOr(e.Rule), e.Version, e.LockToken, e.AtLeast)
}
