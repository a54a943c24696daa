package config

import (
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
)

// None in place of the name of a context says that none is wanted.
const None = "none"

// contextSource begins the sources of what a context says: "context lab: url".
const contextSource = "context "

// Contexts are the named connections of one file.
type Contexts struct {
	Chosen string // the one that counts when nobody names another; empty = none
	Named  map[string]Context
}

// A Context is a named connection.
type Context struct {
	Protected bool
	// Values are those of the connection flags, by the flags' names, as a command
	// line would give them: "true" for a switch.
	Values map[string]string
}

// An Override is a context that was chosen and that variables stand before, in part
// or as a whole.
type Override struct {
	Context   string // empty = nothing was overridden
	Variables []string
}

// An UnknownContextError is a name that is no context's.
type UnknownContextError struct {
	Source string // who named it
	Name   string
	File   string
	Near   []string // names that it is perhaps meant to be
}

func (e *UnknownContextError) Error() string {
	text := e.Source + ": unknown context " + quoted(e.Name)
	if len(e.Near) > 0 {
		text += " (near: " + strings.Join(e.Near, ", ") + ")"
	}
	return text
}

// CheckName tells what is wrong with the name of a context, if anything is.
func CheckName(name string) error {
	const want = "want letters, digits, '.', '_' and '-', beginning with a letter or a digit, at most 64"
	good := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	bad := name == "" || len(name) > 64 || !good(name[0])
	for i := 0; i < len(name) && !bad; i++ {
		bad = !good(name[i]) && strings.IndexByte("._-", name[i]) < 0
	}
	switch {
	case bad:
		return &Error{"the name " + quoted(name), want}
	case name == None:
		return &Error{"the name " + quoted(name), "it says that no context is wanted: want another"}
	}
	return nil
}

// Names are those of the contexts, sorted.
func (c Contexts) Names() []string { return slices.Sorted(maps.Keys(c.Named)) }

// Find returns a context by its name. source is who says the name; the error is an
// *[UnknownContextError].
func (c Contexts) Find(name, source, file string) (Context, error) {
	found, ok := c.Named[name]
	if !ok {
		return Context{}, &UnknownContextError{Source: source, Name: name, File: file, Near: suggest.Near(name, c.Names())}
	}
	return found, nil
}

// Broker is the URL of the context's broker as far as it says one, without a user
// and without what may be secret in it; empty if it says none.
func (c Context) Broker() string {
	r := resolver{layers: []layer{*c.layer("", "")}, out: Settings{Sources: make(map[string]string)}}
	if r.layers[0].spread() != nil {
		return ""
	}
	r.endpoint()
	if r.out.Address == "" {
		return ""
	}
	return r.out.URL()
}

// Embedded tells whether the context is an emulator in place of a broker.
func (c Context) Embedded() bool { return c.Values["embedded"] == "true" }

// layer is what the context says. File names are relative to the file of contexts.
func (c Context) layer(name, file string) *layer {
	l := newLayer()
	for _, s := range settings() {
		value, ok := c.Values[s.flag]
		if !ok {
			continue
		}
		if s.isFile() && !filepath.IsAbs(value) {
			value = filepath.Join(filepath.Dir(file), value)
		}
		l.set(s.flag, value, contextSource+name+": "+s.flag)
	}
	return l
}

// Change gives the context the connection flags of a command line, and takes those
// away that unset names. A flag replaces those that cannot stand beside it. File
// names are made absolute, so that they hold in every directory. The error is an
// *[Error]; nothing has changed then. none tells that no flag was given.
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
			return false, &Error{"--unset", quoted(word) + ": want a connection flag" + didYouMean(name, keys())}
		}
		delete(values, name)
	}
	given := make(map[string]bool)
	for _, s := range settings() {
		f := fs.Lookup(s.flag)
		if !s.inContext() || f == nil || !f.Changed {
			continue
		}
		value := f.Value.String()
		if s.isFile() {
			if value, err = filepath.Abs(value); err != nil {
				return false, &Error{"--" + s.flag, err.Error()}
			}
		}
		if !storable(value) {
			return false, &Error{"--" + s.flag, "holds what cannot be printed: a context is text"}
		}
		given[s.flag], values[s.flag] = true, value
	}
	for flag := range given {
		row, _ := findSetting(flag)
		for _, other := range row.replaces {
			if !given[other] && values[flag] != "false" {
				delete(values, other)
			}
		}
	}
	changed := Context{Protected: c.Protected, Values: values}
	if err := changed.check(given); err != nil {
		return false, err
	}
	*c = changed
	return len(given) == 0 && len(unset) == 0, nil
}

// check tells whether the context names a broker, and whether what it says goes
// together. given are the flags that the user has just written.
func (c Context) check(given map[string]bool) error {
	l := c.layer("", "")
	for flag := range l.sources {
		l.sources[flag] = "--" + flag
		if !given[flag] {
			l.sources[flag] = "the context's " + flag
		}
	}
	r := resolver{out: Settings{Sources: make(map[string]string)}}
	r.fail(l.spread())
	r.layers = []layer{*l}
	r.connection(func(string) (string, bool) { return "", false })
	if u := r.out.Proxy; u != nil {
		if _, secret := u.User.Password(); secret {
			r.bad("proxy", "a context holds no secrets: want SSCLI_PROXY")
		}
	}
	if r.err == nil && r.out.Broker() != nil {
		return ErrNoBroker
	}
	return r.err
}

// storable tells whether a value is text of one line.
func storable(value string) bool {
	return value != "" && utf8.ValidString(value) && !strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) })
}

// namesBroker tells whether a layer says where to connect to.
func (l *layer) namesBroker() (flag string, ok bool) {
	for _, flag := range []string{"url", "host", "embedded"} {
		if v, said := l.values[flag]; said && v != "false" {
			return flag, true
		}
	}
	return "", false
}

// context finds the context that counts: one that a flag named goes before the
// SSCLI_ variables, any other behind them. Whoever stands before the latter and
// names a broker voids it as a whole: what it says of users, tokens and certificates
// is for its own broker.
func (r *resolver) context(fs *pflag.FlagSet, env func(string) (string, bool), flags, vars *layer) (named, chosen *layer) {
	name, byFlag := flags.values["context"]
	source := flags.sources["context"]
	if !byFlag {
		name, source = vars.values["context"], vars.sources["context"]
	}
	if name == None {
		r.out.Sources["context"] = source
		return nil, nil
	}
	if _, elsewhere := flags.namesBroker(); elsewhere && !byFlag {
		return nil, nil
	}
	by, voided := vars.namesBroker()
	voided = voided && !byFlag
	all, file, err := Load(fs, env)
	if err != nil {
		if !voided { // else it does not matter what the file says
			r.fail(err)
		}
		return nil, nil
	}
	if name == "" {
		name, source = all.Chosen, file+": current"
	}
	if name == "" {
		return nil, nil
	}
	if voided {
		r.out.Override = Override{name, []string{vars.sources[by]}}
		return nil, nil
	}
	c, err := all.Find(name, source, file)
	if err != nil {
		r.fail(err)
		return nil, nil
	}
	l := c.layer(name, file)
	r.fail(l.spread())
	r.out.Context, r.out.ContextFile, r.out.Protected = name, file, c.Protected
	r.out.Sources["context"] = source
	if source == file+": current" {
		r.out.Sources["context"] = "chosen"
	}
	if byFlag {
		return l, nil
	}
	if before := overriding(flags, vars, l); len(before) > 0 {
		r.out.Override = Override{name, before}
	}
	return nil, l
}

// overriding lists the variables that stand before what the context says.
func overriding(flags, vars, context *layer) []string {
	says := func(l *layer, names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { _, ok := l.values[name]; return ok })
	}
	var names []string
	for _, s := range settings() {
		same := []string{s.flag}
		if s.group == groupLogin {
			same = inGroup(groupLogin)
		}
		if says(vars, s.flag) && says(context, same...) && !says(flags, s.flag) {
			names = append(names, vars.sources[s.flag])
		}
	}
	return slices.Compact(names)
}

// inGroup returns the flags of a group.
func inGroup(g group) []string {
	var flags []string
	for _, s := range settings() {
		if s.group == g {
			flags = append(flags, s.flag)
		}
	}
	return flags
}

// findSetting returns a setting that can be in a context.
func findSetting(flag string) (setting, bool) {
	for _, s := range settings() {
		if s.flag == flag && s.inContext() {
			return s, true
		}
	}
	return setting{}, false
}

// keys are those that a context can have.
func keys() []string {
	names := []string{"protected"}
	for _, s := range settings() {
		if s.inContext() {
			names = append(names, s.flag)
		}
	}
	return names
}

func didYouMean(name string, names []string) string {
	if found := suggest.Near(strings.ReplaceAll(name, "_", "-"), names); len(found) > 0 {
		return " (near: " + strings.Join(found, ", ") + ")"
	}
	return ""
}

// from is the context of a source, or the flag or variable that it is.
func from(source string) string {
	name, _, _ := strings.Cut(source, ": ")
	return name
}

// An Effective is a value that counts.
type Effective struct {
	Flag, Value string
	Source      string // the flag, the variable, "context lab" or "default"
	FromContext bool
}

// Effective lists the values that count, in the order of help, but for those that
// are as they are when nobody says anything. Nothing in it is secret.
func (s Settings) Effective() []Effective {
	var out []Effective
	add := func(flag, value, source string) {
		e := Effective{flag, value, source, false}
		if source == "" {
			e.Source = "default"
		}
		if strings.HasPrefix(source, contextSource) {
			e.Source, e.FromContext = from(source), true
		}
		out = append(out, e)
	}
	for _, row := range settings() {
		if value := row.show(&s); value != "" && row.flag != "yes" {
			add(row.flag, value, s.Sources[row.flag])
		}
		switch {
		case row.flag == "config" && s.Protected:
			add("protected", "true", contextSource+s.Context+": protected")
		case row.flag == "url" && s.Address != "":
			add("url", s.URL(), s.Sources["host"])
		case (row.flag == "port" || row.flag == "tls") && s.Address != "" && from(s.Sources[row.flag]) != from(s.Sources["host"]):
			// Somebody else than who named the host said it, and the URL shows it.
			value := strconv.FormatBool(s.TLS)
			if row.flag == "port" {
				_, value, _ = net.SplitHostPort(s.Address)
			}
			add(row.flag, value, s.Sources[row.flag])
		case row.flag == "client-id" && s.ClientIDPrefix != "":
			add("client-id", s.ClientIDPrefix+"- and random characters", "AIO_MQTT_CLIENT_ID")
		}
	}
	return out
}
