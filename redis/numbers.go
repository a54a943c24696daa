package redis

import (
	"math/big"
	"strconv"
	"strings"
)

const (
	textSyntax      = "syntax error"
	textInteger     = "value is not an integer or out of range"
	textFloat       = "value is not a valid float"
	textOverflow    = "increment or decrement would overflow"
	textTooLong     = "string exceeds maximum allowed size (proto-max-bulk-len)"
	textNoSuchKey   = "no such key"
	textSameObjects = "source and destination objects are the same"
	textOutOfRange  = "offset is out of range"
	textNotFinite   = "increment would produce NaN or Infinity"
	textCursor      = "invalid cursor"
)

// integerArg reads a number, or replies that it is none.
func (c *conn) integerArg(arg []byte) (int64, bool) {
	n, ok := parseInt(arg)
	if !ok {
		c.error(textInteger)
	}
	return n, ok
}

// mantissa is how many bits the floating-point numbers of Redis have, which are those of
// long double on x86.
const mantissa = 64

// longestFloat is the length from which on Redis takes no text for a number.
const longestFloat = 5 << 10

// parseFloat reads a number as INCRBYFLOAT does.
func parseFloat(text []byte) (*big.Float, bool) {
	s := string(text)
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case "inf", "infinity":
		return new(big.Float).SetPrec(mantissa).SetInf(s[0] == '-'), len(s) > 0 && !strings.HasPrefix(s[1:], "+") && !strings.HasPrefix(s[1:], "-")
	}
	digits := strings.TrimLeft(s, "+-")
	base := 10
	if len(digits) > 1 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') {
		base = 0
	}
	if strings.Contains(s, "_") || len(s) >= longestFloat || base == 10 && strings.ContainsAny(s, "pPiI") {
		return nil, false
	}
	f, _, err := big.ParseFloat(s, base, mantissa, big.ToNearestEven)
	if err != nil || f.IsInf() {
		return nil, false
	}
	if exp := f.MantExp(nil); f.Sign() != 0 && (exp > 16384 || exp < -16445) {
		return nil, false
	}
	return f, true
}

// formatFloat writes a number as Redis does for people: 17 digits after the point, less
// the zeros at the end.
func formatFloat(f *big.Float) []byte {
	text := f.Append(nil, 'f', 17)
	end := len(text)
	for end > 0 && text[end-1] == '0' {
		end--
	}
	if end > 0 && text[end-1] == '.' {
		end--
	}
	if s := string(text[:end]); s == "-0" {
		return []byte("0")
	}
	return text[:end]
}

func formatInt(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
