package check

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
)

// A number is a decimal number of any length, so that numbers that differ only beyond the precision of a float64 stay
// apart. Its float is not 0 unless the number is, and never infinite.
type number struct {
	float    float64
	negative bool
	digits   string // without zeros at either end; empty = 0
	point    int    // position of the decimal point, counted from the beginning of digits
}

// maxPlain is the length up to which a number is written with all its digits.
const maxPlain = 60

// parseNumber returns the number that a text is in decimal notation. ok is false for a number that a float64 cannot hold.
func parseNumber(text string) (n number, ok bool) {
	if strings.ContainsAny(text, "_xXpP") { // ParseFloat takes hexadecimal, with underscores
		return number{}, false
	}
	float, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(float, 0) || math.IsNaN(float) {
		return number{}, false
	}
	unsigned := strings.TrimLeft(text, "+-")
	mantissa, exponent, _ := strings.Cut(strings.ToLower(unsigned), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	n = number{float: float, point: len(whole) - (len(whole+fraction) - len(digits)), digits: strings.TrimRight(digits, "0")}
	if n.digits == "" {
		return number{}, true
	}
	shift, err := strconv.Atoi(cmp.Or(exponent, "0"))
	n.point += shift
	n.negative = strings.HasPrefix(text, "-")
	return n, err == nil && float != 0
}

// expectedNumber says what was expected in place of a text that parseNumber refused.
func expectedNumber(text string) string {
	if float, err := strconv.ParseFloat(text, 64); errors.Is(err, strconv.ErrRange) || err == nil && float == 0 && !strings.ContainsAny(text, "xX") {
		return "expected a number from 1e-323 to 1e308, or 0"
	}
	if _, ok := parseNumber(strings.Replace(text, ",", ".", 1)); ok {
		return "expected a number with a dot, not with a decimal comma"
	}
	return "expected a number"
}

func numberOf(float float64) number {
	n, _ := parseNumber(strconv.FormatFloat(float, 'f', -1, 64))
	return n
}

// compare returns -1, 0 or 1 as n is less than o, equal to it, or greater.
func (n number) compare(o number) int {
	if n.sign() != o.sign() || n.digits == "" {
		return cmp.Compare(n.sign(), o.sign())
	}
	return n.sign() * cmp.Or(cmp.Compare(n.point, o.point), cmp.Compare(n.digits, o.digits))
}

func (n number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.negative:
		return -1
	}
	return 1
}

func (n number) String() string { return n.text('g') }

// text returns the number with all its digits or, if it is long, its float64 in a format of strconv.
func (n number) text(format byte) string {
	if text := n.plain(); len(text) <= maxPlain {
		return text
	}
	return strconv.FormatFloat(n.float, format, -1, 64)
}

// plain returns the number with all its digits, or a text longer than maxPlain.
func (n number) plain() string {
	text := n.digits
	switch {
	case text == "":
		return "0"
	case len(text) > maxPlain || n.point > maxPlain || n.point < -maxPlain:
		return strings.Repeat("0", maxPlain+1)
	case n.point <= 0:
		text = "0." + strings.Repeat("0", -n.point) + text
	case n.point >= len(text):
		text += strings.Repeat("0", n.point-len(text))
	default:
		text = text[:n.point] + "." + text[n.point:]
	}
	if n.negative {
		return "-" + text
	}
	return text
}
