package format

import "strings"

// Explanation is the result of `explain`: whether a write would be refused, and why.
type Explanation struct {
	Key     string
	Found   bool
	Version Version // of the key; zero = missing, or not sent by the store

	Lock      string // empty = no lock was named
	Held      bool
	Holder    string
	LockToken Version

	Token  Version // the write's token; zero = none
	ToKey  string  // Token compared with Version: older, equal or newer; empty = not compared
	ToLock string  // Token compared with LockToken; has the same values as ToKey

	AtLeast Version // the key's oldest possible token, if every write carries the lock's newest token; zero = unknown

	Asked   bool   // Verdict is the store's reply to a probe
	Verdict string // passes, refused or unknown
	Rule    string // which of the store's rules decides; empty = not known
	Assumes bool   // Verdict is valid only if every write of the key carries the lock's newest token

	AssumesClock bool // Verdict is valid only if the store's clock is not ahead of the local clock

	Why  string
	Hint string // the next thing to do; may be empty
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
	o.add("asked", when(e.Asked, true))
	o.add("verdict", e.Verdict)
	o.add("rule", nonEmpty(e.Rule))
	o.add("assumes_lock", when(locked, e.Assumes))
	o.add("assumes_clock", when(e.AssumesClock, true))
	o.add("why", e.Why)
	o.add("hint", nonEmpty(e.Hint))
}

func (e Explanation) human(w *writer) {
	line := func(name, text string) { w.printf("%-9s%s\n", name, text) }
	issued := func(v Version) string {
		return versionText(v, "unknown") + w.faint.Sprint("  ("+Age(w.now().Sub(v.Time()))+")")
	}
	key, lock := w.key.Sprint(Word(e.Key)), w.key.Sprint(Word(e.Lock))
	switch {
	case !e.Found:
		line("key", key+" is missing")
	case e.Version.IsZero():
		line("key", key+" exists, its version is unknown")
	default:
		line("key", key+" was written at "+issued(e.Version))
	}
	switch {
	case e.Lock == "":
	case !e.Held:
		line("lock", lock+" is free")
	case e.LockToken.IsZero():
		line("lock", lock+" is held by "+Brief(e.Holder)+", its token is unknown")
	default:
		line("lock", lock+" is held by "+Brief(e.Holder)+" with the token "+issued(e.LockToken))
	}
	if e.Token.IsZero() {
		line("token", "none")
	} else {
		line("token", issued(e.Token))
		if text := e.comparison(); text != "" {
			line("", text)
		}
	}
	if e.Found {
		fence := "the key's token cannot be read"
		if !e.AtLeast.IsZero() {
			fence += "; if every write carries the newest token of the lock, at least " + versionText(e.AtLeast, "")
		}
		line("fence", fence)
	}
	if e.Asked {
		line("asked", "the store, with a VDEL of a value that the key does not have; sscli assumes that this changes nothing")
	}
	verdict := e.Verdict
	if e.Verdict != "passes" {
		verdict = w.warning.Sprint(verdict)
	}
	line("verdict", verdict+": "+printable(e.Why))
	if e.Hint != "" {
		w.print("  try: ", printable(e.Hint), "\n")
	}
}

// comparison compares, in words, the token with the key's version and with the lock's token.
func (e Explanation) comparison() string {
	var parts []string
	for _, side := range [][2]string{{e.ToKey, "the key's version"}, {e.ToLock, "the token of the lock"}} {
		switch how, what := side[0], side[1]; how {
		case "":
		case "equal":
			parts = append(parts, "the same as "+what)
		default:
			parts = append(parts, how+" than "+what)
		}
	}
	return strings.Join(parts, ", ")
}

// raw writes the verdict, the rule, the key's version, the lock's token, AtLeast, and what the verdict
// assumes: lock or clock. A minus stands for an unknown or missing value.
func (e Explanation) raw(w *writer) {
	assumes := ""
	switch {
	case e.Assumes:
		assumes = "lock"
	case e.AssumesClock:
		assumes = "clock"
	}
	w.record(e.Verdict, nonEmpty(e.Rule), e.Version, e.LockToken, e.AtLeast, nonEmpty(assumes))
}
