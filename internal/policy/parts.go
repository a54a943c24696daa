package policy

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sscli/sscli/internal/glob"
)

// A part is literal text, or a token that stands for a value of the principal.
type part struct{ text, token string }

func (p part) varies() bool { return p.token != "" && p.token != tokenWild && p.token != tokenApp }

// name returns a part as written.
func (p part) name() string {
	if p.token == "" || p.token == tokenWild {
		return p.text
	}
	return tokenStart + p.token + "}"
}

// value returns what a token stands for. The broker does not say what happens if a principal has no
// such value; see AssumeMissing.
func (w *Principal) value(token string) (text string, ok bool) {
	switch token {
	case tokenUser:
		text = w.Username
	case tokenClient:
		text = w.ClientID
	case tokenProven:
		if w.ClientID == w.Username {
			text = w.ClientID
		}
	default:
		text = w.Attributes[strings.TrimPrefix(token, tokenAttribute)]
	}
	return text, text != ""
}

// lacks reports whether a part is a token whose value a principal lacks.
func (w *Principal) lacks(p part) bool {
	_, ok := w.value(p.token)
	return p.varies() && !ok
}

// set gives the principal, whose attributes nobody else has, a value for a token.
func (w *Principal) set(token, text string) {
	switch token {
	case tokenUser:
		w.Username = text
	case tokenClient:
		w.ClientID = text
	default:
		if w.Attributes == nil {
			w.Attributes = make(map[string]string)
		}
		w.Attributes[strings.TrimPrefix(token, tokenAttribute)] = text
	}
}

// parseParts splits a text at its tokens. why says what is wrong with one.
func parseParts(text string) (parts []part, why string) {
	for text != "" {
		start := strings.IndexAny(text, "{}")
		if start < 0 {
			return append(parts, part{text: text}), ""
		}
		if start > 0 {
			parts = append(parts, part{text: text[:start]})
		}
		text = text[start:]
		end := strings.IndexByte(text, '}')
		if end <= 0 {
			return nil, "a brace that is not part of a token such as {principal.clientId}"
		}
		token, known := strings.CutPrefix(text[:end], tokenStart)
		if !known || !validToken(token) {
			return nil, fmt.Sprintf("%s is not a token: expected {principal.clientId}, {principal.username} or {principal.attributes.NAME}", text[:end+1])
		}
		parts = append(parts, part{token: token})
		text = text[end+1:]
	}
	return parts, ""
}

func validToken(token string) bool {
	name, attribute := strings.CutPrefix(token, tokenAttribute)
	return token == tokenUser || token == tokenClient || attribute && name != "" && !strings.ContainsAny(name, "{} ")
}

// wildcard reports whether a level of a filter is a wildcard, and why it is not allowed.
func wildcard(levels []string, i int) (is bool, why string) {
	switch l := levels[i]; {
	case l == wildOne, l == wildAll && i == len(levels)-1:
		return true, ""
	case strings.ContainsAny(l, "+#"):
		return false, fmt.Sprintf("the level %q: a wildcard must be a whole level, and # the last", l)
	}
	return false, ""
}

// parses reports whether parts are a pattern, whatever the tokens stand for.
func parses(parts []part) bool {
	whole := ""
	for _, p := range parts {
		if p.token != "" {
			whole += "x"
			continue
		}
		whole += p.text
		if strings.Contains(p.text, "[") {
			if _, ok := glob.Parse(p.text); !ok && !strings.Contains(p.text, "**") {
				return false
			}
		}
	}
	if !strings.Contains(whole, "[") && !strings.Contains(whole, "**") {
		return true
	}
	_, ok := glob.Parse(whole)
	return ok
}

// valuesOf returns the length of the values that replace tokens, in bytes.
func valuesOf(parts []part, who *Principal) (n int) {
	for _, p := range parts {
		if value, ok := who.value(p.token); ok && p.token != "" {
			n += len(value)
		}
	}
	return n
}

// compile returns the pattern for a principal, with the values of tokens taken literally, or nil if
// the principal lacks a value, or has longer ones than maxValues.
func compile(parts []part, who *Principal) *glob.Pattern {
	text, ok := replaced(parts, who)
	if valuesOf(parts, who) > maxValues || !ok || !utf8.ValidString(text) {
		return nil
	}
	p, _ := glob.Parse(text)
	return p
}

// replaced returns a pattern with the values of tokens taken literally. ok is false if the principal lacks one, which is x.
func replaced(parts []part, who *Principal) (pattern string, ok bool) {
	ok = true
	for _, p := range parts {
		text := p.text
		if p.token != "" {
			value, known := who.value(p.token)
			text, ok = QuotePattern(cmp.Or(value, "x")), ok && known
		}
		pattern += text
	}
	return pattern, ok
}
