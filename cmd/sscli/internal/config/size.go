package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Size is a flag for a number of bytes, see ParseSize.
type Size int

// Set parses the value of the flag.
func (s *Size) Set(text string) error {
	n, err := ParseSize(text)
	if err == nil {
		*s = Size(n)
	}
	return err
}

func (s *Size) String() string { return strconv.Itoa(int(*s)) }

// Type is part of [pflag.Value].
func (*Size) Type() string { return "size" }

// ParseSize parses a number of bytes: a whole number, which a unit may follow, as in 64MiB. Units with an i are
// powers of 1024, the others powers of 1000; the B and the case do not matter.
func ParseSize(text string) (int, error) {
	digits := strings.TrimRight(text, "BKMGTbkmgti")
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return 0, errors.New("must be a number of bytes, such as 1000, 64KiB or 10MB")
	}
	unit := strings.TrimSuffix(strings.ToLower(text[len(digits):]), "b")
	base := uint64(1000)
	if rest, binary := strings.CutSuffix(unit, "i"); binary && rest != "" {
		unit, base = rest, 1024
	}
	power := strings.Index("kmgt", unit) + 1
	switch {
	case unit == "":
		power = 0
	case len(unit) > 1 || power == 0:
		return 0, fmt.Errorf("%.8q: must be a unit such as KiB, MiB, GiB, KB, MB or GB", text[len(digits):])
	}
	for range power {
		if n > math.MaxInt/base {
			return 0, errors.New("is too large")
		}
		n *= base
	}
	if n > math.MaxInt {
		return 0, errors.New("is too large")
	}
	return int(n), nil
}
