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

// longLease is the time without a renewal after which a key may have no expiry. A holder renews its lock
// three times in a lease, and few leases are longer than three minutes.
const longLease = time.Minute

// maybeNoLock says why what looks like a held lock may be an ordinary key, which nobody releases and which
// does not expire. It is empty if nothing speaks for that. The store says neither what a key is for nor
// whether it expires.
func maybeNoLock(s client.LockStatus) string {
	age := time.Since(s.Token.Time())
	switch {
	case s.Holder == nil:
		return ""
	case !looksLikeHolder(s.Holder):
		return "; this may be an ordinary key and no lock: " + format.Brief(string(s.Holder)) + " does not look like the name of a holder"
	case !s.Token.IsZero() && age > longLease:
		return "; not renewed for " + format.Span(age) + ": the lease is longer, or this is an ordinary key without expiry and no lock"
	}
	return ""
}

// looksLikeHolder reports whether a value may be the name of a holder. Such a name is unique, so it is one
// word with a number, or with the separator of a client id and a session or of a user and a host.
func looksLikeHolder(value []byte) bool {
	text := string(value)
	isWord := utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) })
	isInteger := !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	isJSON := json.Valid(bytes.TrimSpace(value)) && !isInteger
	return isWord && !isJSON && strings.ContainsAny(text, "0123456789:@")
}
