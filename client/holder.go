package client

import (
	"bytes"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"
)

// A generated holder is a name, a colon and a stamp: 16 characters of base32 in lower case. The first nine are the upper
// 45 bits of a number of 64 bits: the milliseconds since the Unix epoch when the wait for the lock began, by the store's
// clock, to which those of the clients may differ. If the lock was free then, they are random, and the highest bit is set,
// which is a time after the year 2500. The other seven are always random.
const (
	stampTime = 9
	stampSize = 16
	stampBits = 64 - 5*stampTime
)

// newHolder generates a holder. If began is zero, the holder does not tell when it began to wait.
func newHolder(name string, began time.Time) []byte {
	stamp := strings.ToLower(rand.Text()[:stampSize])
	if began.IsZero() {
		stamp = "7" + stamp[1:]
	} else {
		at := binary.BigEndian.AppendUint64(nil, uint64(began.UnixMilli())<<stampBits)
		stamp = strings.ToLower(base32.StdEncoding.EncodeToString(at)[:stampTime]) + stamp[stampTime:]
	}
	return []byte(name + ":" + stamp)
}

// IsGeneratedHolder reports whether a holder looks like one that [Session.Lock] or [Session.AcquireLock] generated.
func IsGeneratedHolder(holder []byte) bool {
	_, ok := waitBegan(holder)
	return ok
}

// waitBegan returns when a generated holder began to wait. The time is in the future if the holder does not tell.
func waitBegan(holder []byte) (began time.Time, ok bool) {
	colon := len(holder) - stampSize - 1
	if colon < 0 || holder[colon] != ':' || bytes.ContainsFunc(holder[colon:], isUpper) {
		return began, false
	}
	stamp, err := base32.StdEncoding.DecodeString(strings.ToUpper(string(holder[colon+1:])))
	if err != nil {
		return began, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(stamp) >> stampBits)), true
}

func isUpper(r rune) bool { return 'A' <= r && r <= 'Z' }
