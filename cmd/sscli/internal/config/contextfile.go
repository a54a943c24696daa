package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"github.com/sscli/sscli/cmd/sscli/internal/atomicfile"
)

// A FileError is a file of contexts that cannot be used.
type FileError struct {
	File string
	Line int    // 0 = the file as a whole
	Key  string // such as contexts.lab.url; empty = none
	Why  string
	Hint string // the next thing to type; empty = none
}

func (e *FileError) Error() string {
	text := e.File
	if e.Line > 0 {
		text += ":" + strconv.Itoa(e.Line)
	}
	if e.Key != "" {
		text += ": " + e.Key
	}
	return text + ": " + e.Why
}

// Path returns the file of the contexts and who names it: --config, SSCLI_CONFIG,
// or nobody. That is $XDG_CONFIG_HOME/sscli/config.yaml, where XDG_CONFIG_HOME is
// $HOME/.config (on Windows %AppData%) if it is not set or not absolute; empty if
// the environment has none of them.
func Path(flags *pflag.FlagSet, env func(string) (string, bool)) (file, source string) {
	if f := flags.Lookup("config"); f != nil && f.Changed {
		return f.Value.String(), "--config"
	}
	if file, ok := env("SSCLI_CONFIG"); ok && file != "" {
		return file, "SSCLI_CONFIG"
	}
	dir, _ := env("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home, under := "HOME", ".config"
		if runtime.GOOS == "windows" {
			home, under = "AppData", ""
		}
		dir, _ = env(home)
		if !filepath.IsAbs(dir) {
			return "", ""
		}
		dir = filepath.Join(dir, under)
	}
	return filepath.Join(dir, "sscli", "config.yaml"), ""
}

// Load reads the contexts that flags and environment lead to, and says from where.
// No file is no contexts, unless a flag names it. The error is a *[FileError].
func Load(flags *pflag.FlagSet, env func(string) (string, bool)) (Contexts, string, error) {
	file, source := Path(flags, env)
	if file == "" {
		return Contexts{}, "", nil
	}
	c, err := read(file)
	if errors.Is(err, fs.ErrNotExist) && source != "--config" {
		return Contexts{}, file, nil
	}
	return c, file, fileError(file, err)
}

// fileError makes a *FileError of what the system says of a file.
func fileError(file string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*FileError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		if e.Path != file {
			return &FileError{File: file, Why: err.Error()}
		}
		err = e.Err
	}
	return &FileError{File: file, Why: err.Error()}
}

// maxFile is more than anybody writes, and little to read.
const maxFile = 1 << 20

// read refuses a file that somebody else can write to: it says where passwords are
// sent.
func read(file string) (Contexts, error) {
	f, err := os.Open(file)
	if err != nil {
		return Contexts{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Contexts{}, err
	}
	if othersWrite(info) {
		return Contexts{}, &FileError{
			File: file, Why: fmt.Sprintf("others can write to it (mode %#o)", info.Mode().Perm()), Hint: "chmod 600 " + file,
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Contexts{}, err
	}
	if len(text) > maxFile {
		return Contexts{}, &FileError{File: file, Why: "is larger than 1 MiB: want a file of contexts"}
	}
	return parse(text, file)
}

// Edit changes the contexts in a file, which need not be there, as one step:
// whoever else edits it waits, and nobody ever reads half of it. The file is then
// readable and writable for its owner only. A link to a file stays one.
//
// Errors are those of change, or a *[FileError].
func Edit(ctx context.Context, file string, change func(*Contexts) error) error {
	target, err := follow(file)
	if err != nil {
		return fileError(file, err)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return fileError(file, err)
	}
	unlock, err := lock(ctx, target+".lock")
	if err != nil {
		return fileError(file, err)
	}
	defer unlock()
	c, err := read(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileError(target, err)
	}
	if err := change(&c); err != nil {
		return err
	}
	text, err := render(c)
	if err != nil {
		return fileError(file, err)
	}
	return fileError(file, atomicfile.Replace(target, text, 0o600))
}

// follow returns where links lead, also if there is nothing yet.
func follow(file string) (string, error) {
	for range 40 {
		to, err := os.Readlink(file)
		if err != nil { // no link, or nothing
			return file, nil
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(file), to)
		}
		file = to
	}
	return "", errors.New("too many links")
}

// lock waits until this process alone has the file, which it makes, open in a way
// that excludes others.
func lock(ctx context.Context, file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := tryLock(f)
		if err == nil {
			// The system takes the lock back with the file. The file stays: to
			// remove it would take it from under somebody who waits.
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, errLocked) {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		}
	}
}

// errLocked is a lock that somebody else has.
var errLocked = errors.New("somebody else has it locked")

// parse reads a file of contexts:
//
//	current: lab
//	contexts:
//	  lab:
//	    url: mqtts://lab.example
//	    ca-file: /etc/lab/ca.crt
//	    protected: true
//
// The error is a *FileError. It repeats no value: one may be a secret that was put
// there by mistake.
func parse(text []byte, file string) (Contexts, error) {
	p := parser{file}
	var c Contexts
	root, err := p.document(text)
	if err != nil || root == nil {
		return c, err
	}
	err = p.mapping(root, "", func(key, value *yaml.Node) error {
		switch key.Value {
		case "current":
			name, err := p.text(value, "current")
			c.Chosen = name
			return err
		case "contexts":
			c.Named, err = p.contexts(value)
			return err
		}
		return p.bad(key, quoted(key.Value), "unknown key: want current or contexts")
	})
	return c, err
}

type parser struct{ file string }

func (p parser) bad(n *yaml.Node, key, why string) error {
	return &FileError{File: p.file, Line: n.Line, Key: key, Why: why}
}

// document returns the one document of a file, nil if there is none.
func (p parser) document(text []byte) (*yaml.Node, error) {
	loader, err := yaml.NewLoader(strings.NewReader(string(text)))
	if err != nil {
		return nil, p.syntax(err)
	}
	var first, second yaml.Node
	if err := loader.Load(&first); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, p.syntax(err)
	}
	if err := loader.Load(&second); !errors.Is(err, io.EOF) {
		return nil, &FileError{File: p.file, Why: "there is more than one document: want one"}
	}
	if first.Kind == yaml.DocumentNode && len(first.Content) == 1 {
		return first.Content[0], nil
	}
	return &first, nil
}

func (p parser) syntax(err error) error {
	e := &FileError{File: p.file, Why: "not YAML"}
	if load, ok := errors.AsType[*yaml.LoadError](err); ok {
		e.Line, e.Why = load.Mark.Line, "not YAML: "+load.Message
		if strings.HasPrefix(load.Message, "unknown anchor") {
			e.Why = "not YAML: unknown anchor" // and not what it is called
		}
	}
	return e
}

// mapping calls do for each key and its value, and refuses a key that is there
// twice. Nothing in place of a mapping is an empty one.
func (p parser) mapping(n *yaml.Node, name string, do func(key, value *yaml.Node) error) error {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return p.bad(n, name, "want keys with values")
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return p.bad(key, name, "want a name for a key")
		}
		if seen[key.Value] {
			return p.bad(key, join(name, quoted(key.Value)), "is there twice")
		}
		seen[key.Value] = true
		if err := do(key, value); err != nil {
			return err
		}
	}
	return nil
}

func join(name, key string) string {
	if name == "" {
		return key
	}
	return name + "." + key
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// text reads a scalar as it is written, empty for nothing.
func (p parser) text(n *yaml.Node, key string) (string, error) {
	if isNull(n) {
		return "", nil
	}
	if n.Kind != yaml.ScalarNode {
		return "", p.bad(n, key, "want text")
	}
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
		return n.Value, nil
	}
	return "", p.bad(n, key, "want plain text, without a tag")
}

func (p parser) contexts(n *yaml.Node) (map[string]Context, error) {
	named := make(map[string]Context)
	err := p.mapping(n, "contexts", func(key, value *yaml.Node) (err error) {
		if bad, ok := errors.AsType[*Error](CheckName(key.Value)); ok {
			return p.bad(key, join("contexts", quoted(key.Value)), bad.Why)
		}
		named[key.Value], err = p.context(value, join("contexts", key.Value))
		return err
	})
	return named, err
}

func (p parser) context(n *yaml.Node, name string) (Context, error) {
	c := Context{Values: make(map[string]string)}
	err := p.mapping(n, name, func(key, value *yaml.Node) error {
		full := join(name, key.Value)
		s, known := findSetting(key.Value)
		if key.Value == "protected" {
			s, known = setting{flag: key.Value}, true
		}
		if !known {
			return p.bad(key, join(name, quoted(key.Value)), unknownKey(key.Value))
		}
		text, err := p.text(value, full)
		switch {
		case err != nil:
			return err
		case s.isSwitch() && value.ShortTag() != "!!bool":
			return p.bad(value, full, "want true or false")
		case !storable(text):
			return p.bad(value, full, "want a line of text")
		case s.isSwitch():
			text = strings.ToLower(text)
		}
		if key.Value == "protected" {
			c.Protected = text == "true"
		} else {
			c.Values[s.flag] = text
		}
		return nil
	})
	return c, err
}

// unknownKey says what to write instead.
func unknownKey(key string) string {
	file := map[string]string{"password": "password-file", "key-password": "key-password-file", "sat": "sat-file", "token": "sat-file"}
	if instead, ok := file[strings.ToLower(strings.ReplaceAll(key, "_", "-"))]; ok {
		return "no secrets here: want " + instead + ": FILE"
	}
	for _, s := range settings() {
		if s.flag == key {
			return "a context is about the connection, this is not: want --" + key
		}
	}
	return "unknown key: want the name of a connection flag, or protected" + didYouMean(key, keys())
}

// render is what parse reads.
func render(c Contexts) ([]byte, error) {
	type document struct {
		Current  string                    `yaml:"current,omitempty"`
		Contexts map[string]map[string]any `yaml:"contexts,omitempty"`
	}
	d := document{Current: c.Chosen, Contexts: make(map[string]map[string]any)}
	for name, context := range c.Named {
		values := make(map[string]any)
		for flag, value := range context.Values {
			values[flag] = plain(flag, value)
		}
		if context.Protected {
			values["protected"] = true
		}
		d.Contexts[name] = values
	}
	return yaml.Dump(d)
}

// plain lets a switch and a port be written as people do.
func plain(flag, value string) any {
	if s, ok := findSetting(flag); ok && s.isSwitch() {
		return value == "true"
	}
	if n, err := strconv.Atoi(value); flag == "port" && err == nil && strconv.Itoa(n) == value {
		return n
	}
	return value
}

// quoted is a name that may be anything, in an error.
func quoted(name string) string { return fmt.Sprintf("%.64q", name) }
