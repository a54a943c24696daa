package client

import (
	"crypto/rand"
	"strings"
	"time"
)

// A generated holder is a name, a colon and a stamp: stampSize characters of stampText. The first stampTime of them are a
// number: the milliseconds since the Unix epoch when the wait for the lock began, by the store's clock, from which those of
// the clients may differ. In the stamp of a client that did not have to wait, this is a time after the year 2500. The other
// characters are random.
const (
	stampText = "abcdefghijklmnopqrstuvwxyz234567" // base32 in lower case
	stampTime = 9
	stampSize = 20
)

// newHolder generates a holder. If began is zero, the client did not have to wait.
func newHolder(name string, began time.Time) []byte {
	stamp := []byte(strings.ToLower(rand.Text()[:stampSize]))
	if stamp[0] = stampText[len(stampText)-1]; !began.IsZero() {
		for i, ms := stampTime-1, max(began.UnixMilli(), 0); i >= 0; i, ms = i-1, ms/int64(len(stampText)) {
			stamp[i] = stampText[ms%int64(len(stampText))]
		}
	}
	return append([]byte(name+":"), stamp...)
}

// IsGeneratedHolder reports whether a value looks like a holder that [Session.Lock] or [Session.AcquireLock] generated.
func IsGeneratedHolder(value []byte) bool {
	_, ok := waitBegan(value)
	return ok
}

// waitBegan returns when the client with a generated holder began to wait. The time is in the future if it did not.
func waitBegan(holder []byte) (began time.Time, ok bool) {
	colon := len(holder) - stampSize - 1
	if colon < 0 || holder[colon] != ':' {
		return began, false
	}
	var ms int64
	for i, c := range holder[colon+1:] {
		digit := strings.IndexByte(stampText, c)
		if digit < 0 {
			return began, false
		}
		if i < stampTime {
			ms = ms*int64(len(stampText)) + int64(digit)
		}
	}
	return time.UnixMilli(ms), true
}
