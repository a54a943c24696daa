package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/yamltext"
)

// None is the name that means no context, where the name of a context is expected.
const None = "none"

// Contexts holds the named connections in a context file.
type Contexts struct {
	Chosen string             // the context to use by default; empty = none
	Named  map[string]Context // by name
}

// A Context is a named connection.
type Context struct {
	Protected bool // sscli asks before each write

	// Values maps the name of a connection flag to its value as on a command line: "true" for a
	// switch.
	Values map[string]string
}

// An UnknownContextError means that there is no context with this name.
type UnknownContextError struct {
	Source string   // the flag, variable or command that gave the name
	Name   string   // the name that was not found
	File   string   // the context file
	Near   []string // similar names in the file
}

func (e *UnknownContextError) Error() string {
	text := e.Source + ": unknown context " + quoted(e.Name)
	if len(e.Near) > 0 {
		text += " (did you mean " + strings.Join(e.Near, " or ") + "?)"
	}
	return text
}

// Advice returns the hint for a number, which was meant as a count, as in ping -c 2 of other programs.
func (e *UnknownContextError) Advice() (suggest.Hint, bool) {
	if e.Name == "" || strings.Trim(e.Name, "0123456789") != "" {
		return nil, false
	}
	return suggest.Try("`-n " + e.Name + "` is a count, and -c a context; `sscli context list`"), true
}

// CheckName returns an *[Error] if a context cannot have the name.
func CheckName(name string) error {
	if why := wrongName(name); why != "" {
		return &Error{Why: "the name " + quoted(name) + ": " + why}
	}
	return nil
}

// wrongName returns why a context cannot have the name, or "".
func wrongName(name string) string {
	const want = "expected letters, digits, '.', '_' and '-', beginning with a letter or a digit, at most 64"
	good := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	bad := name == "" || len(name) > 64 || !good(name[0])
	for i := 0; i < len(name) && !bad; i++ {
		bad = !good(name[i]) && strings.IndexByte("._-", name[i]) < 0
	}
	switch {
	case bad:
		return want
	case name == None:
		return "reserved for no context: choose another name"
	}
	return ""
}

// checkName checks the name of a context in the context file. The error is a *FileError.
func checkName(name *yamltext.Node) error {
	if why := wrongName(name.Value); why != "" {
		return &FileError{Line: name.Line, Key: "contexts." + quoted(name.Value), Why: why}
	}
	return nil
}

// newContext returns the context with the given values from the context file. The error is a
// *FileError.
func newContext(name string, values map[string]value) (Context, error) {
	c := Context{Values: make(map[string]string)}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		v, why := values[key], ""
		s, known := findSetting(key)
		switch {
		case !known && key != "protected":
			key, why = quoted(key), unknownKey(key)
		case s.isSwitch() && !v.isBool: // protected is a switch too: its s is the zero setting
			why = "must be true or false"
		case !storable(v.text):
			why = "expected one line of text"
		}
		if why != "" {
			return c, &FileError{Line: v.line, Key: "contexts." + name + "." + key, Why: why}
		}
		c.Values[key] = v.text
	}
	c.Protected = c.Values["protected"] == "true"
	delete(c.Values, "protected")
	return c, nil
}

// Names returns the names of the contexts, sorted.
func (c Contexts) Names() []string { return slices.Sorted(maps.Keys(c.Named)) }

// Find returns a context by its name. source is the flag, variable or command that named the context,
// for the error, which is an *[UnknownContextError].
func (c Contexts) Find(name, source, file string) (Context, error) {
	found, ok := c.Named[name]
	if !ok {
		return Context{}, &UnknownContextError{Source: source, Name: name, File: file, Near: suggest.Near(name, c.Names())}
	}
	return found, nil
}

// Broker returns the URL of the context's broker, without the user name and without secrets. It returns
// "" if the context names no broker.
func (c Context) Broker() string {
	r := resolver{layers: []layer{c.layer("", "")}, out: Settings{Sources: make(map[string]Source)}}
	if r.layers[0].expand() != nil {
		return ""
	}
	r.endpoint()
	if r.out.Address == "" {
		return ""
	}
	if r.out.Via != nil {
		return r.out.Via.String()
	}
	return r.out.URL()
}

// Embedded reports whether the context uses an emulator in place of a broker.
func (c Context) Embedded() bool { return c.Values["embedded"] == "true" }

// layer returns the context's values as a layer. Relative file names are relative to the context
// file.
func (c Context) layer(name, file string) layer {
	l := make(layer)
	for _, s := range settings() {
		value, ok := c.Values[s.flag]
		if !ok {
			continue
		}
		if s.isFile() {
			value = files.Beside(file, value)
		}
		l[s.flag] = given{value, Source{Context: name, Key: s.flag}}
	}
	return l
}

// Change stores the connection flags of a command line in the context, and removes the flags in
// unset. A flag replaces the flags that exclude it: --url replaces --host. File names become
// absolute, so that they do not depend on the working directory. none is true if there was nothing
// to set or remove. The error is an *[Error], a *[MeantError] or a *[NoBrokerError]; the context
// is then unchanged.
func (c *Context) Change(fs *pflag.FlagSet, unset []string) (none bool, err error) {
	values := maps.Clone(c.Values)
	if values == nil {
		values = make(map[string]string)
	}
	for _, word := range unset {
		name := strings.TrimPrefix(word, "--")
		if name == "protected" {
			continue
		}
		if _, ok := findSetting(name); !ok {
			return false, &Error{Source{Flag: "unset"}, quoted(word) + ": expected a connection flag" + didYouMean(name, keys())}
		}
		delete(values, name)
	}
	onLine := make(map[string]bool)
	for _, s := range settings() {
		f := fs.Lookup(s.flag)
		if !s.inContext() || f == nil || !f.Changed {
			continue
		}
		value := f.Value.String()
		if s.isFile() {
			if value, err = filepath.Abs(value); err != nil {
				return false, &Error{Source{Flag: s.flag}, err.Error()}
			}
		}
		if !storable(value) {
			return false, &Error{Source{Flag: s.flag}, "has characters that cannot be printed: expected text"}
		}
		onLine[s.flag], values[s.flag] = true, value
	}
	for flag := range onLine {
		row, _ := findSetting(flag)
		for _, other := range row.replaces {
			if !onLine[other] && values[flag] != "false" {
				delete(values, other)
			}
		}
	}
	changed := Context{Protected: c.Protected, Values: values}
	if err := changed.check(onLine); err != nil {
		return false, err
	}
	*c = changed
	return len(onLine) == 0 && len(unset) == 0, nil
}

// check returns an error if the context names no broker, or if its values are invalid or exclude
// each other. onLine holds the flags of this command line.
func (c Context) check(onLine map[string]bool) error {
	l := c.layer("", "")
	for flag := range onLine {
		l[flag] = given{l[flag].value, Source{Flag: flag}}
	}
	r := resolver{out: Settings{Sources: make(map[string]Source)}}
	r.fail(l.expand())
	r.layers = []layer{l}
	r.connection(func(string) (string, bool) { return "", false })
	if r.err == nil && r.out.Broker() != nil {
		return &NoBrokerError{}
	}
	return r.err
}

// storable reports whether a value is one line of printable text.
func storable(value string) bool {
	return value != "" && utf8.ValidString(value) && !strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) })
}

// unknownKey returns why a context cannot have a key, and what to write in place of the key.
func unknownKey(key string) string {
	file := map[string]string{"password": "password-file", "key-password": "key-password-file", "sat": "sat-file", "token": "sat-file"}
	if instead, ok := file[strings.ToLower(strings.ReplaceAll(key, "_", "-"))]; ok {
		return "no secrets here: expected " + instead + ": FILE"
	}
	for _, s := range settings() {
		if s.flag == key {
			return "not a connection setting, so it cannot be in a context: expected --" + key
		}
	}
	return "unknown key: expected the name of a connection flag, or protected" + didYouMean(key, keys())
}
