// Package yamltext reads YAML that people write: files of contexts, manifests and definitions of data
// flows.
//
//	docs, err := yamltext.Parse(ctx, text)
//	for key, value := range yamltext.Members(docs[0]) {
//		text, ok := yamltext.Scalar(value)
//	}
//
// Promises:
//
//   - A scalar is read as YAML 1.2 says, or refused: no number, date or boolean is written another way.
//   - Time and memory are proportional to the text. Aliases and merge keys that make a document much
//     larger than its text are an error, so that a reader may follow them. The end of the context ends
//     the parser.
//   - No mapping has a key twice.
package yamltext

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A Node is a value in a document: a mapping, a sequence or a scalar.
type Node = yaml.Node

// An Error is a mistake in a text.
type Error struct {
	Line   int      // from 1
	Column int      // from 1; 0 = not known
	Key    string   // the key that the error is about; may be empty
	Why    string   // without any text of the document, which may be a secret
	More   []*Error // other mistakes in the keys of the text
}

// Error returns what is wrong, but not where.
func (e *Error) Error() string {
	if e.Key != "" {
		return fmt.Sprintf("the key %.64q %s", e.Key, e.Why)
	}
	return "not YAML: " + e.Why
}

// Parse returns the roots of the documents in text, without those that are empty. The error is an *Error
// or the cause of ctx. If there are only mistakes in keys, the roots are returned beside the error.
func Parse(ctx context.Context, text []byte) (roots []*Node, err error) {
	text = fromJSON(text)
	if err := check(text); err != nil {
		return nil, err
	}
	text, slashes := escapedSlashes(accepted(text))
	var mistakes []*Error
	for in := yaml.NewDecoder(&reader{ctx, bytes.NewReader(text)}); ; {
		var document Node
		switch err := in.Decode(&document); {
		case err == io.EOF && mistakes != nil:
			mistakes[0].More = mistakes[1:]
			return roots, mistakes[0]
		case err == io.EOF:
			return roots, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			_, why := split(err)
			e := &Error{Line: lineOf(ctx, text, err), Why: why}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, e
		}
		if slashes {
			restoreSlashes(&document)
		}
		root := resolve(document.Content[0])
		c := checker{sizes: make(map[*Node]int), room: maxGrowth*len(text) + 1<<20}
		if _, err := c.check(document.Content[0]); err != nil {
			return nil, err
		}
		mistakes = append(mistakes, c.mistakes...)
		if root.Kind != yaml.ScalarNode || root.ShortTag() != "!!null" {
			roots = append(roots, root)
		}
	}
}

// Quote returns text, which is UTF-8, in double quotes, as both YAML and JSON read it.
func Quote(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // no error: a string can be encoded, and a Builder takes every write
	return string(escape([]byte(strings.TrimSuffix(b.String(), "\n"))))
}

// escape writes the characters of JSON that YAML has only as escapes.
func escape(text []byte) []byte {
	if bytes.IndexFunc(text, mustEscape) < 0 {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	for _, r := range string(text) {
		if mustEscape(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// escapedSlashes replaces the escape \/ of YAML 1.2, which the library refuses, with \x2f. ok is false if the text
// has no such escape, or if it contains \x2f already, so that restoreSlashes could not tell the two apart.
func escapedSlashes(text []byte) (escaped []byte, ok bool) {
	if !bytes.Contains(text, []byte(`\/`)) || bytes.Contains(text, []byte(slash)) {
		return text, false
	}
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '/':
			escaped = append(escaped, slash...)
			i++
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '\\':
			escaped = append(escaped, text[i], text[i+1])
			i++
		default:
			escaped = append(escaped, text[i])
		}
	}
	return escaped, true
}

const slash = `\x2f`

// restoreSlashes undoes escapedSlashes in the scalars that have no escapes.
func restoreSlashes(n *Node) {
	if n.Kind == yaml.ScalarNode && n.Style&yaml.DoubleQuotedStyle == 0 {
		n.Value = strings.ReplaceAll(n.Value, slash, `\/`)
	}
	for _, below := range n.Content {
		restoreSlashes(below)
	}
}

// fromJSON writes what JSON may write and the library refuses, as the library reads it: surrogate
// pairs, and characters without an escape. It returns a text that is not JSON as it is.
func fromJSON(text []byte) []byte {
	if !json.Valid(text) || !utf8.Valid(text) {
		return text
	}
	text = escape(text)
	unit := func(escape []byte) (r rune) {
		if len(escape) >= 6 && escape[0] == '\\' && escape[1] == 'u' {
			n, _ := strconv.ParseUint(string(escape[2:6]), 16, 16) // no error: the text is JSON
			r = rune(n)
		}
		return r
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		if r := utf16.DecodeRune(unit(text[i:]), unit(text[min(i+6, len(text)):])); r != utf8.RuneError {
			out = utf8.AppendRune(out, r)
			i += 11
			continue
		}
		out = append(out, text[i], text[i+1])
		i++
	}
	return out
}

// check refuses text that is not UTF-8, and characters that the library refuses or reads other than YAML
// 1.2 says.
func check(text []byte) error {
	for i, r := range string(text) {
		switch {
		case r == utf8.RuneError && !bytes.HasPrefix(text[i:], []byte("\ufffd")):
			return &Error{Line: lineAfter(text[:i]), Why: "expected UTF-8; iconv -f WINDOWS-1252 -t UTF-8 converts what Windows writes"}
		case r == bom && i == 0:
		case mustEscape(r):
			return &Error{Line: lineAfter(text[:i]), Why: fmt.Sprintf(`the character %U: write it in double quotes, as \u%04x`, r, r)}
		}
	}
	return nil
}

func mustEscape(r rune) bool {
	switch {
	case r >= ' ' && r < 0x7f, r == '\n', r == '\r', r == '\t':
		return false
	case r < 0xa0, r == '\u2028', r == '\u2029', r == bom, r == '\ufffe', r == '\uffff':
		return true
	}
	return false
}

const bom = '\ufeff'

func lineAfter(text []byte) int {
	count := func(end string) int { return bytes.Count(text, []byte(end)) }
	return 1 + count("\n") + count("\r") - count("\r\n")
}

// accepted returns text with the directive %YAML 1.1, the only one that the library accepts, in place of %YAML 1.2.
// Directives are before the first document, and after a line that ends a document.
func accepted(text []byte) []byte {
	if !bytes.Contains(text, []byte("%YAML")) {
		return text
	}
	version := regexp.MustCompile(`^\x{feff}?%YAML[ \t]+1\.2([ \t\r\n]|$)`)
	other := regexp.MustCompile(`^\x{feff}?(%|[ \t\r\n]*(#|$))`) // another directive, a comment, or nothing
	end := regexp.MustCompile(`^\.\.\.([ \t\r\n]|$)`)
	text = bytes.Clone(text)
	between, start := true, 0
	for _, next := range lineEnds(text) {
		line := text[start:next]
		if between && version.Match(line) {
			line[bytes.IndexByte(line, '.')+1] = '1'
		} else if !between || !other.Match(line) {
			between = end.Match(line)
		}
		start = next
	}
	return text
}

// lineEnds returns where the lines of text end: after their line ends.
func lineEnds(text []byte) (ends []int) {
	for i, c := range text {
		if i == len(text)-1 || c == '\n' || c == '\r' && text[i+1] != '\n' {
			ends = append(ends, i+1)
		}
	}
	return ends
}

// lineOf returns the number of the line with which an error of the library about text begins: the text up to its end
// has the error, and the text before it has not. The library names the line before the one in which the list or the
// mapping begins; if it begins in the first line, the line before the mistake.
func lineOf(ctx context.Context, text []byte, err error) int {
	more := ""
	if strings.Contains(err.Error(), "',' or") {
		// The library has this error at the end of each text that ends in brackets. More text than it reads ahead
		// tells a mistake from the end.
		more = strings.Repeat("\n, x", 1<<10)
	}
	ends := lineEnds(text)
	i := sort.Search(len(ends), func(i int) bool { return hasError(ctx, text[:ends[i]], more, err) })
	if i == len(ends) { // these brackets are never closed
		i, _ = split(err)
	}
	return max(1, min(i+1, len(ends)))
}

// hasError reports whether the library has the error err in text, before it has read all of more.
func hasError(ctx context.Context, text []byte, more string, err error) bool {
	rest := strings.NewReader(more)
	for in := yaml.NewDecoder(&reader{ctx, io.MultiReader(bytes.NewReader(text), rest)}); ; {
		var document Node
		if got := in.Decode(&document); got != nil {
			return got.Error() == err.Error() && (more == "" || rest.Len() > 0)
		}
	}
}

// A reader ends with the error of ctx.
type reader struct {
	ctx    context.Context
	source io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.source.Read(p)
}

// plain says in plain words what an error of the library means, if it is a frequent one.
func plain(why string) string {
	return strings.NewReplacer(
		"could not find expected ':'", "expected a colon after a key",
		"did not find expected key", "expected a key, indented like the keys above it",
		"did not find expected '-' indicator", "expected - and an item, indented like the items above it",
		"did not find expected ',' or ']'", "expected a comma or, at the end of the list, ]",
		"did not find expected ',' or '}'", "expected a comma or, at the end of the mapping, }",
		"did not find expected node content", "expected a value: a bracket or brace has no counterpart",
		"did not find expected <document start>", "expected --- before another document",
		"mapping values are not allowed in this context", "a colon in a value without quotes, or a wrong indentation",
		"block sequence entries are not allowed in this context", "a list must begin on a line below its key",
		"found character that cannot start any token", "a tab in the indentation, or a value that must be quoted",
		"found unknown escape character", `an unknown escape in double quotes: write \\ for a backslash`,
		"found unexpected end of stream", "quotes are not closed",
	).Replace(why)
}

// split returns the line of an error of the library, or 0 if it has none, and its text without the line and without
// quoted text of the document.
func split(err error) (line int, why string) {
	why = strings.TrimPrefix(err.Error(), "yaml: ")
	if number, rest, ok := strings.Cut(strings.TrimPrefix(why, "line "), ": "); ok {
		if n, err := strconv.Atoi(number); err == nil {
			line, why = n, rest
		}
	}
	why, _, _ = strings.Cut(why, "\n")
	why, _, _ = strings.Cut(plain(why), " '")
	return line, why
}

// maxGrowth is the maximum size of a document with all aliases written out, in sizes of its text.
const maxGrowth = 10

// A checker checks a document, and computes its size with all aliases written out.
type checker struct {
	sizes map[*Node]int // of nodes with an anchor; 0 = not yet computed
	room  int           // maximum size, in bytes

	mistakes []*Error // in keys
}

func (c *checker) check(n *Node) (size int, err error) {
	target := resolve(n)
	if known, seen := c.sizes[target]; seen && known == 0 {
		return 0, &Error{Line: n.Line, Why: "an alias of a value in itself"}
	} else if seen {
		return known, nil
	}
	if target.Anchor != "" {
		c.sizes[target] = 0
	}
	size = 8 + len(target.Value)
	var keys map[string]bool
	if target.Kind == yaml.MappingNode {
		keys = make(map[string]bool, len(target.Content)/2)
	}
	for i, child := range target.Content {
		if keys != nil && i%2 == 0 {
			key := resolve(child)
			why, name := "", key.Value
			switch {
			case key.Kind != yaml.ScalarNode || hasTag(key):
				why, name = "a key is not text", ""
			case keys[key.Value]:
				why = "occurs twice"
			case isMerge(key) && !mergeable(target.Content[i+1]):
				why = "expected a mapping, or a list of mappings"
			}
			if why != "" {
				c.mistakes = append(c.mistakes, &Error{Line: child.Line, Column: child.Column, Key: name, Why: why})
			}
			keys[key.Value] = true
		}
		part, err := c.check(child)
		if err != nil {
			return 0, err
		}
		if size += part; size > c.room {
			return 0, &Error{Line: n.Line, Why: "aliases make the document too large"}
		}
	}
	if target.Anchor != "" {
		c.sizes[target] = size
	}
	return size, nil
}

// resolve returns the node that an alias names, or n if it is no alias.
func resolve(n *Node) *Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isMerge(key *Node) bool { return key.Value == "<<" && key.ShortTag() == "!!merge" }

func isMapping(n *Node) bool { return resolve(n).Kind == yaml.MappingNode }

// mergeable reports whether n can be the value of a merge key.
func mergeable(n *Node) bool {
	n = resolve(n)
	return isMapping(n) || n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, func(n *Node) bool { return !isMapping(n) })
}

// Members returns an iterator over the keys of a mapping and their values, with those that its merge
// keys (<<) add. Another node, or nil, has no members.
func Members(n *Node) iter.Seq2[*Node, *Node] {
	return func(yield func(key, value *Node) bool) {
		seen := make(map[string]bool)
		visit(n, func(key, value *Node) bool {
			if seen[key.Value] {
				return true
			}
			seen[key.Value] = true
			return yield(key, value)
		})
	}
}

// visit calls f for the members of a mapping, the ones of merged mappings last.
func visit(n *Node, f func(key, value *Node) bool) bool {
	var merged []*Node
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		switch key, value := resolve(n.Content[i]), resolve(n.Content[i+1]); {
		case isMerge(key) && value.Kind == yaml.SequenceNode:
			merged = append(merged, value.Content...)
		case isMerge(key):
			merged = append(merged, value)
		case !f(key, value):
			return false
		}
	}
	return !slices.ContainsFunc(merged, func(n *Node) bool { return !visit(resolve(n), f) })
}

// Member returns the value of a key of a mapping, or nil if there is none.
func Member(n *Node, name string) (member *Node) {
	visit(n, func(key, value *Node) bool {
		if key.Value == name {
			member = value
		}
		return member == nil
	})
	return member
}

// Items returns the elements of a sequence. ok is false for another node.
func Items(n *Node) (items []*Node, ok bool) {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil, false
	}
	for _, item := range n.Content {
		items = append(items, resolve(item))
	}
	return items, true
}

// Scalar returns the text of a scalar. A number, a date or a boolean is returned as it is written,
// because it may be meant as text. ok is false for null, for a value with a tag other than !!str, and
// for nodes that are not scalars.
func Scalar(n *Node) (text string, ok bool) {
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" || hasTag(n) {
		return "", false
	}
	return n.Value, true
}

// hasTag reports whether n is written with a tag other than !!str.
func hasTag(n *Node) bool { return n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != "!!str" }

// IsMapping reports whether n is a mapping.
func IsMapping(n *Node) bool { return n.Kind == yaml.MappingNode }

// IsNull reports whether n is null, or no value at all.
func IsNull(n *Node) bool { return n.ShortTag() == "!!null" }

// IsBool reports whether n is true or false.
func IsBool(n *Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" }

// IsString reports whether n is a string.
func IsString(n *Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" }

// IsPlain reports whether n is a scalar without quotes.
func IsPlain(n *Node) bool { return n.Kind == yaml.ScalarNode && n.Style == 0 }

// IsLiteral reports whether n is a scalar that begins with |.
func IsLiteral(n *Node) bool { return n.Kind == yaml.ScalarNode && n.Style&yaml.LiteralStyle != 0 }
