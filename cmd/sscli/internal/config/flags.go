package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// A Text is the value of a flag that takes text. It must not be empty: if $TOKEN is empty,
// --fence "$TOKEN" must be an error, not a write without a fence.
type Text string

// Set implements [pflag.Value]. It returns an error for an empty text.
func (t *Text) Set(text string) error {
	if text == "" {
		return errors.New("must not be empty")
	}
	*t = Text(text)
	return nil
}

// String implements [pflag.Value].
func (t *Text) String() string { return string(*t) }

// Type implements [pflag.Value]. It returns the name of the value in help.
func (t *Text) Type() string { return "string" }

// A File is the name of a file, the value of a flag. It must not be empty.
type File string

// FileValue is the name of a file in help, and the type of the flags whose value completion looks for among files.
const FileValue = "FILE"

// Set implements [pflag.Value]. It returns an error for an empty name.
func (f *File) Set(name string) error { return (*Text)(f).Set(name) }

// String implements [pflag.Value].
func (f *File) String() string { return string(*f) }

// Type implements [pflag.Value].
func (*File) Type() string { return FileValue }

// Files are the names of files, the values of a flag that may be repeated. None may be empty.
type Files []string

// Set implements [pflag.Value]. It adds a name, and returns an error for an empty one.
func (f *Files) Set(name string) error {
	var file File
	if err := file.Set(name); err != nil {
		return err
	}
	*f = append(*f, name)
	return nil
}

// String implements [pflag.Value].
func (f *Files) String() string { return strings.Join(*f, " ") }

// Type implements [pflag.Value].
func (*Files) Type() string { return FileValue }

// A Level is how often a switch was given: -v is 1, -vv is 2.
type Level int

// Set implements [pflag.Value]. "true" adds 1, "false" sets 0, and a number sets the level.
func (l *Level) Set(text string) error {
	switch n, err := strconv.Atoi(text); {
	case text == "true":
		*l++
	case text == "false":
		*l = 0
	case err != nil || n < 0:
		return fmt.Errorf("%.32q: must be true, false or a number", text)
	default:
		*l = Level(n)
	}
	return nil
}

// String implements [pflag.Value].
func (l *Level) String() string {
	if *l == 0 {
		return "false" // help does not show this default
	}
	return strconv.Itoa(int(*l))
}

// Type implements [pflag.Value]. Help shows a Level as a switch.
func (l *Level) Type() string { return "bool" }

// named is a Text whose value has a name in help, such as FILE.
type named struct {
	Text
	name string
}

// Type implements [pflag.Value].
func (n *named) Type() string { return n.name }

// Bind defines the flags of all settings. The help text of a flag names its SSCLI_ variable.
func Bind(fs *pflag.FlagSet) {
	var zero Settings
	for _, s := range settings() {
		usage := s.usage
		if s.env != "" {
			usage += " [" + s.env + "]"
		}
		switch {
		case s.value != "":
			fs.VarP(&named{name: s.value}, s.flag, s.short, usage)
		case s.counts(&zero):
			fs.VarPF(new(Level), s.flag, s.short, usage).NoOptDefVal = "true"
		default:
			fs.BoolP(s.flag, s.short, false, usage)
		}
	}
}

// isOwn is the annotation of the flags that Own marks.
const isOwn = "own"

// Own marks flags of a command that have the name of a setting but another meaning.
func Own(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = fs.SetAnnotation(name, isOwn, nil) // the flag exists
	}
}

// A Section is a part of the list of settings in help.
type Section struct {
	Heading string
	Flags   []string
}

// Sections returns the sections of help, with the flags of all settings in the order of [Bind].
func Sections() []Section {
	var list []Section
	for _, s := range settings() {
		if s.heading != "" {
			list = append(list, Section{Heading: s.heading})
		}
		last := &list[len(list)-1]
		last.Flags = append(last.Flags, s.flag)
	}
	return list
}

// ConnectionFlags returns the flags that a line of a shell cannot have, because they would need another
// connection.
func ConnectionFlags() []string {
	return flagsOf(func(s setting) bool { return !s.onLine() })
}

// Words returns the possible values of each flag that has a fixed list of them. A word that ends
// in = is a prefix.
func Words() map[string][]string {
	words := make(map[string][]string)
	for _, s := range settings() {
		if len(s.words) > 0 {
			words[s.flag] = s.words
		}
	}
	return words
}

// Variables returns the environment variables that can stand in for a flag, by flag, in order of
// precedence.
func Variables() map[string][]string {
	vars := make(map[string][]string)
	for _, s := range settings() {
		for _, name := range []string{s.env, s.aio} {
			if name != "" {
				vars[s.flag] = append(vars[s.flag], name)
			}
		}
	}
	vars["proxy"] = append(vars["proxy"], proxyVariables()...)
	return vars
}

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

// ParseDuration parses a duration in a flag, a variable, a context or a line of a shell. The duration
// must have a unit, as in 500ms, 10s, 1h30m or 14d, except for 0. Days are a whole number, alone, of 24 hours
// each. For a number without a unit, the error is a *[NoUnitError].
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	_, asMillis := time.ParseDuration(text + "ms")
	_, asSeconds := time.ParseDuration(text + "s")
	if asMillis == nil && asSeconds == nil {
		return 0, &NoUnitError{text}
	}
	return 0, fmt.Errorf("%.32q: expected a duration such as 500ms, 10s or 2m", text)
}

// A NoUnitError means that a duration has no unit. sscli does not guess the unit, because some users
// mean milliseconds, as with PX, and others mean seconds.
type NoUnitError struct {
	Text string // the number
}

func (e *NoUnitError) Error() string {
	return fmt.Sprintf("%.32q has no unit: %.32sms or %.32ss?", e.Text, e.Text, e.Text)
}

// MeantDuration returns the duration that the user probably meant by a text that [ParseDuration]
// refuses: 10s for 10, 168h for 1w. It returns "" if it has no guess.
func MeantDuration(text string) string {
	number := strings.TrimRight(text, "w")
	n, err := strconv.ParseUint(number, 10, 16)
	switch unit := text[len(number):]; {
	case err != nil:
		return ""
	case unit == "" && n < 1000: // larger numbers are probably milliseconds
		return number + "s"
	case unit == "w":
		return fmt.Sprintf("%dh", 7*24*n)
	}
	return ""
}
