package config

import (
	"errors"

	"github.com/spf13/pflag"
)

// A Text is the value of a flag that is no switch. It is not empty: whoever writes
// --fence "$TOKEN" and has no token must not end up without a fence.
type Text string

// Set makes it a [pflag.Value].
func (t *Text) Set(text string) error {
	if text == "" {
		return errors.New("want something")
	}
	*t = Text(text)
	return nil
}

func (t *Text) String() string { return string(*t) }

// Type is what help calls the value.
func (t *Text) Type() string { return "string" }

// named is a Text with a name in help.
type named struct {
	Text
	name string
}

func (n *named) Type() string { return n.name }

// Bind defines the flags.
func Bind(fs *pflag.FlagSet) {
	for _, s := range settings() {
		usage := s.usage
		if s.env != "" {
			usage += " [" + s.env + "]"
		}
		if s.value == "" {
			fs.BoolP(s.flag, s.short, false, usage)
			continue
		}
		fs.VarP(&named{name: s.value}, s.flag, s.short, usage)
	}
}

// ConnectionFlags lists the flags that are about the connection.
func ConnectionFlags() []string {
	var names []string
	for _, s := range settings() {
		if !s.onLine() {
			names = append(names, s.flag)
		}
	}
	return names
}

// Words returns what the value of a flag can be, by flag, where that can be listed. A word
// that ends in = goes on.
func Words() map[string][]string {
	words := make(map[string][]string)
	for _, s := range settings() {
		if len(s.words) > 0 {
			words[s.flag] = s.words
		}
	}
	return words
}

// Variables lists the environment variables that Resolve reads, by flag.
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
