package config

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// parse reads a file of contexts:
//
//	current: lab
//	contexts:
//	  lab:
//	    url: mqtts://lab.example
//	    ca-file: /etc/lab/ca.crt
//	    protected: true
//
// The error is a *FileError. It repeats no value, because a value may be a secret that was put
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
			e.Why = "not YAML: unknown anchor" // without its name, which may be a part of a secret
		}
	}
	return e
}

// mapping calls do for each key and its value, and refuses a key that occurs twice. A null is
// an empty mapping.
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
			return p.bad(key, join(name, quoted(key.Value)), "occurs twice")
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

// text reads a scalar as it is written; a null is empty.
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
			return p.bad(value, full, "want one line of text")
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

// unknownKey says what to write in place of an unknown key.
func unknownKey(key string) string {
	file := map[string]string{"password": "password-file", "key-password": "key-password-file", "sat": "sat-file", "token": "sat-file"}
	if instead, ok := file[strings.ToLower(strings.ReplaceAll(key, "_", "-"))]; ok {
		return "no secrets here: want " + instead + ": FILE"
	}
	for _, s := range settings() {
		if s.flag == key {
			return "not a connection setting, so it cannot be in a context: want --" + key
		}
	}
	return "unknown key: want the name of a connection flag, or protected" + didYouMean(key, keys())
}

// render writes contexts as parse reads them.
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

// plain returns a value as YAML's own type: a bool for a switch, an int for a port.
func plain(flag, value string) any {
	if s, ok := findSetting(flag); ok && s.isSwitch() {
		return value == "true"
	}
	if n, err := strconv.Atoi(value); flag == "port" && err == nil && strconv.Itoa(n) == value {
		return n
	}
	return value
}
