package dataset

import (
	"fmt"
	"math/big"
	"strings"
)

// A Condition requires that a field of a record equals a value.
type Condition struct {
	Field Path
	Value []byte // JSON
}

// A Query selects the record that a data flow uses: the first one that meets all conditions.
//
// The documentation of data flows does not define ==. In a Query, two values are equal if they have the
// same type (string, boolean, integer or decimal) and the same value, of any number of digits. A string never equals a number,
// an integer never equals a decimal, and a missing field, null, an object or an array equals nothing.
type Query []Condition

// Match reports whether a record meets all conditions. If the record meets or nearly meets each
// condition, near describes the differences; otherwise near is empty.
func (q Query) Match(record []byte) (matches bool, near string) {
	var nearly []string
	for _, c := range q {
		value := c.Field.In(record)
		if Equal(c.Value, value) {
			continue
		}
		why := almost(c.Value, value)
		if why == "" {
			return false, ""
		}
		nearly = append(nearly, fmt.Sprintf("%s is %s, not %s: %s", c.Field, value, c.Value, why))
	}
	return nearly == nil, strings.Join(nearly, "; ")
}

// Equal reports whether two JSON values are equal as [Query] defines it.
func Equal(a, b []byte) bool {
	x, err := Parse(a)
	y, err2 := Parse(b)
	return err == nil && err2 == nil && x.id() == y.id()
}

// id returns a text that two scalars share if and only if they are equal as [Query] defines it.
func (s Scalar) id() string {
	if s.isNumber() {
		return s.Kind[:1] + decimal(s.Text)
	}
	return s.Kind[:1] + s.Text
}

// decimal returns a JSON number in a form that all spellings of the number share: its digits without
// zeros at either end, and the exponent of the last digit. No digit is lost, as it would be in a float64.
func decimal(number string) string {
	digits, sign := strings.CutPrefix(number, "-")
	exponent := new(big.Int)
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		exponent.SetString(strings.TrimPrefix(digits[i+1:], "+"), 10)
		digits = digits[:i]
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimRight(whole+fraction, "0")
	exponent.Add(exponent, big.NewInt(int64(len(whole)-len(digits))))
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "0"
	}
	if sign {
		digits = "-" + digits
	}
	return digits + "e" + exponent.String()
}

func (s Scalar) isNumber() bool { return s.Kind == "integer" || s.Kind == "decimal" }

// almost returns a text that describes the difference between two unequal values if it is small, such
// as their case. Otherwise it returns "".
func almost(a, b []byte) string {
	x, err := Parse(a)
	y, err2 := Parse(b)
	switch {
	case err != nil || err2 != nil:
		return ""
	case x.isNumber() && y.isNumber():
		if decimal(x.Text) == decimal(y.Text) {
			return "the same number, as an integer and as a decimal"
		}
		return ""
	}
	var why []string
	if x.Kind != y.Kind {
		why = append(why, "another type")
	}
	s, t := x.Text, y.Text
	if s != t && blanks(s) == blanks(t) {
		why = append(why, "other blanks")
	} else if s != t && strings.EqualFold(blanks(s), blanks(t)) {
		why = append(why, "another case")
		if len(blanks(s)) != len(s) || len(blanks(t)) != len(t) {
			why = append(why, "other blanks")
		}
	} else if s != t {
		return ""
	}
	return strings.Join(why, ", ")
}

// blanks returns text with a single space between words, and no space at either end.
func blanks(text string) string { return strings.Join(strings.Fields(text), " ") }
