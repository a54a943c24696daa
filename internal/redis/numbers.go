package redis

import (
	"bytes"
	"math/big"
	"strconv"
	"strings"
)

// parseInt parses a number as strictly as Redis: without a plus sign, leading zeros or -0, and
// within 64 bits.
func parseInt(text []byte) (n int64, ok bool) {
	digits := bytes.TrimPrefix(text, []byte("-"))
	if len(digits) == 0 || len(digits) > 19 || digits[0] < '1' && string(text) != "0" {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}

// integerArg parses an integer argument. If the argument is not an integer, it returns errInteger.
func integerArg(arg []byte) (int64, error) {
	n, ok := parseInt(arg)
	if !ok {
		return 0, errInteger
	}
	return n, nil
}

const (
	// Precision and range of the x86 long double, the type in which Redis calculates.
	mantissaBits = 64
	maxExponent  = 16384
	minExponent  = -16445
	// maxFloatText is the smallest length, in bytes, at which Redis rejects the text of a number as too long.
	maxFloatText = 5 << 10
)

// parseFloat parses a number as INCRBYFLOAT does.
func parseFloat(text []byte) (*big.Float, bool) {
	if len(text) >= maxFloatText {
		return nil, false
	}
	s := string(text)
	unsigned := strings.TrimLeft(s, "+-")
	switch strings.ToLower(unsigned) {
	case "inf", "infinity":
		return new(big.Float).SetPrec(mantissaBits).SetInf(s[0] == '-'), len(s)-len(unsigned) <= 1
	}
	base := 10
	if strings.HasPrefix(strings.ToLower(unsigned), "0x") {
		base = 0
	}
	if strings.Contains(s, "_") || base == 10 && strings.ContainsAny(s, "pPiI") {
		return nil, false
	}
	f, _, err := big.ParseFloat(s, base, mantissaBits, big.ToNearestEven)
	if err != nil || f.IsInf() {
		return nil, false
	}
	if exp := f.MantExp(nil); f.Sign() != 0 && (exp > maxExponent || exp < minExponent) {
		return nil, false
	}
	return f, true
}

// digitsWork returns the work of parsing or formatting a number of n digits, in keys as in look.
func digitsWork(n int) int {
	n = min(n, maxFloatText)
	return n * n >> 14
}

// formatFloat formats a number as INCRBYFLOAT does: at most 17 digits after the point, without
// trailing zeros.
func formatFloat(f *big.Float) []byte {
	if f.MantExp(nil) <= -58 { // less than half of the last digit: Text would calculate thousands of digits
		return []byte("0")
	}
	text := strings.TrimSuffix(strings.TrimRight(f.Text('f', 17), "0"), ".")
	if text == "-0" {
		text = "0"
	}
	return []byte(text)
}
