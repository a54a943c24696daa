package config

import (
	"errors"
	"fmt"
	"strconv"

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
