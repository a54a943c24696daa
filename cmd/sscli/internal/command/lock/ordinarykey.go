package lock

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

// longLease is the time without a renewal after which a key may be an ordinary key, which does not
// expire. A holder renews its lock three times per lease, and few leases are longer than three minutes.
const longLease = time.Minute

// ordinaryKeyNote returns a note for the user if a key that looks like a held lock may be an ordinary
// key, which nobody releases and which does not expire. Otherwise it returns "". The store does not say
// which keys are locks, so ordinaryKeyNote guesses from the value and the age. A plain word such as
// alice may be the name of a holder, so the word alone causes a note only if waits is true: the
// user waits, or has waited, for the lock.
func ordinaryKeyNote(s client.LockStatus, waits bool) string {
	age := time.Since(s.Token.Time())
	switch {
	case s.Holder == nil:
		return ""
	case !mayBeHolder(s.Holder), waits && !isUnique(s.Holder):
		return "; this may be an ordinary key and no lock: " + format.Brief(string(s.Holder)) + " does not look like the name of a holder"
	case !s.Token.IsZero() && age > longLease:
		return "; not renewed for " + format.Span(age) + ": the lease is longer, or this is an ordinary key without expiry and no lock"
	}
	return ""
}

// mayBeHolder reports whether a value may be the name of a holder: one word that is not JSON, or a
// number such as the id of a job.
func mayBeHolder(value []byte) bool {
	text := string(value)
	isWord := text != "" && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) })
	isInteger := !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	return isWord && (isInteger || !json.Valid(value))
}

// isUnique reports whether the name of a holder looks unique: it has a digit, or a separator of parts
// such as a user and a host.
func isUnique(value []byte) bool { return bytes.ContainsAny(value, "0123456789:@") }
