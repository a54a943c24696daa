package config

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sscli/sscli/internal/yamltext"
)

// A value is a scalar in a context file.
type value struct {
	text   string // as written in the file, because a number may be meant as text; empty = null
	isBool bool
	line   int
}

// parse parses the text of a context file:
//
//	current: lab
//	contexts:
//	  lab:
//	    url: mqtts://lab.example
//	    ca-file: /etc/lab/ca.crt
//	    protected: true
//
// The error is a *FileError that contains no value from the file, because a value may be a secret that
// was put there by mistake.
func parse(text []byte, file string) (Contexts, error) {
	c, err := decode(bytes.TrimPrefix(text, []byte("\ufeff")))
	if e, ok := errors.AsType[*FileError](err); ok {
		e.File = file
	}
	return c, err
}

// narrow returns text with one context, name or else the current one, and blank lines in place of the
// others: with 1,000 contexts, reading all of them would take longer than a request. It returns text itself
// unless each context is a block of lines, as render writes them, without aliases.
func narrow(text []byte, name string) []byte {
	if bytes.ContainsAny(text, "&*\t\r") {
		return text
	}
	out := make([]byte, 0, 1024)
	indent, keep, inContexts := 0, true, false
	for line := range bytes.Lines(text) {
		rest := bytes.TrimLeft(line, " ")
		depth := len(line) - len(rest)
		blank := len(rest) == 0 || rest[0] == '\n' || rest[0] == '#'
		switch {
		case bytes.Count(line, []byte(`"`))%2+bytes.Count(line, []byte("'"))%2 > 0: // text over several lines
			return text
		case blank:
		case depth == 0:
			key, value := plainPair(rest)
			inContexts, keep, indent = key == "contexts" && value == "", true, 0
			if !inContexts && (key != "current" || CheckName(value) != nil) {
				return text
			}
			if !inContexts && name == "" {
				name = value
			}
		case !inContexts || depth < indent:
			return text
		case indent == 0 || depth == indent:
			key, value := plainPair(rest)
			if CheckName(key) != nil || value != "" {
				return text
			}
			indent, keep = depth, key == name
		}
		if keep && !blank {
			out = append(out, line...)
		} else {
			out = append(out, '\n')
		}
	}
	return out
}

// plainPair splits a line with a key and a value, without the comment after them.
func plainPair(line []byte) (key, value string) {
	key, value, _ = strings.Cut(strings.TrimRight(string(line), " \n"), ":")
	value, _, _ = strings.Cut(value, " #")
	return key, strings.TrimSpace(value)
}

// decode parses a text that has at most one document.
func decode(text []byte) (c Contexts, err error) {
	if len(text) > maxFile {
		return c, &FileError{Why: "larger than 2 MiB: expected a file of contexts"}
	}
	roots, err := yamltext.Parse(context.Background(), text)
	if e, ok := errors.AsType[*yamltext.Error](err); ok && e.Key != "" {
		return c, &FileError{Line: e.Line, Key: quoted(e.Key), Why: e.Why}
	} else if ok {
		return c, &FileError{Line: e.Line, Why: e.Error()}
	}
	switch {
	case len(roots) == 0:
		return c, nil
	case len(roots) > 1:
		return c, &FileError{Line: roots[1].Line, Why: "there is more than one document"}
	}
	err = members(roots[0], "", func(key, n *yamltext.Node) error {
		switch key.Value {
		case "current":
			v, err := scalar(n, key.Value)
			c.Chosen = v.text
			return err
		case "contexts":
			c.Named = make(map[string]Context)
			return members(n, key.Value, c.add)
		}
		return &FileError{Line: key.Line, Key: quoted(key.Value), Why: "unknown key: expected current or contexts"}
	})
	return c, err
}

func (c *Contexts) add(name, n *yamltext.Node) error {
	values := make(map[string]value)
	if err := checkName(name); err != nil {
		return err
	}
	path := "contexts." + name.Value
	err := members(n, path, func(key, n *yamltext.Node) (err error) {
		values[key.Value], err = scalar(n, path+"."+key.Value)
		return err
	})
	if err == nil {
		c.Named[name.Value], err = newContext(name.Value, values)
	}
	return err
}

// members calls f for each member of a mapping, and not at all for null. path leads to the mapping.
func members(n *yamltext.Node, path string, f func(key, n *yamltext.Node) error) error {
	if !yamltext.IsMapping(n) && !yamltext.IsNull(n) {
		return &FileError{Line: n.Line, Key: path, Why: "expected keys with values"}
	}
	for key, n := range yamltext.Members(n) {
		if err := f(key, n); err != nil {
			return err
		}
	}
	return nil
}

// scalar returns the value of a scalar or null. path leads to it.
func scalar(n *yamltext.Node, path string) (value, error) {
	text, ok := yamltext.Scalar(n)
	v := value{text: text, isBool: yamltext.IsBool(n), line: n.Line}
	if !ok && !yamltext.IsNull(n) {
		if !storable(path) {
			path = ""
		}
		return v, &FileError{Line: n.Line, Key: path, Why: "expected plain text"}
	}
	if v.isBool {
		v.text = strings.ToLower(text)
	}
	return v, nil
}

func render(c Contexts) ([]byte, error) {
	type file struct {
		Current  string                    `yaml:"current,omitempty"`
		Contexts map[string]map[string]any `yaml:"contexts,omitempty"`
	}
	f := file{c.Chosen, make(map[string]map[string]any)}
	for name, context := range c.Named {
		values := make(map[string]any)
		for key, text := range context.Values {
			values[key] = text
			if s, _ := findSetting(key); s.isSwitch() {
				values[key] = text == "true"
			} else if n, err := strconv.Atoi(text); key == "port" && err == nil && strconv.Itoa(n) == text {
				values[key] = n
			}
		}
		if context.Protected {
			values["protected"] = true
		}
		f.Contexts[name] = values
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	err := e.Encode(f)
	return out.Bytes(), errors.Join(err, e.Close())
}
