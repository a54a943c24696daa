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

// longLease is the time without a renewal after which a key is suspected of having no expiry. A holder
// renews its lock three times per lease, and few leases are longer than three minutes.
const longLease = time.Minute

// maybeNoLock says why a key that looks like a held lock may be an ordinary key, which nobody releases
// and which does not expire. It returns "" if there is no such sign. The store says neither what a key
// is for nor whether it expires. A plain word such as alice may be a holder's name, so it counts as a
// sign only if waits is true: the user waits for the lock.
func maybeNoLock(s client.LockStatus, waits bool) string {
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

// mayBeHolder reports whether a value may be the name of a holder: one word that is not JSON, or a whole
// number such as the id of a job.
func mayBeHolder(value []byte) bool {
	text := string(value)
	isWord := text != "" && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) })
	isInteger := !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	return isWord && (isInteger || !json.Valid(value))
}

// isUnique reports whether a holder's name looks unique: it contains a digit, or the separator between a
// client id and a session, or between a user and a host.
func isUnique(value []byte) bool { return bytes.ContainsAny(value, "0123456789:@") }
