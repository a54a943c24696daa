package policy

import (
	"regexp"
	"strings"

	"github.com/sscli/sscli/internal/yamltext"
)

func misspelt(n *yamltext.Node, want string) bool { return n != nil && n.Value != want }

// fixTokens returns a text in which misspelt tokens are written as the broker knows them.
func fixTokens(text string) string {
	for _, fix := range tokenFixes() {
		text = fix.wrong.ReplaceAllString(text, fix.right)
	}
	return text
}

// A tokenFix is a way to misspell a token.
type tokenFix struct {
	wrong *regexp.Regexp
	right string
}

func tokenFixes() []tokenFix {
	return []tokenFix{
		{regexp.MustCompile(`(?i)\{\s*(?:principals?\.)?client_?id\s*\}`), tokenStart + tokenClient + "}"},
		{regexp.MustCompile(`(?i)\{\s*(?:principals?\.)?user_?name\s*\}`), tokenStart + tokenUser + "}"},
		{regexp.MustCompile(`(?i)\{\s*(?:principals?\.)?attributes?\.([^{}\s]+)\s*\}`), tokenStart + tokenAttribute + "$1}"},
	}
}

// fixTopic returns a topic without mistakes in its tokens and wildcards that are known, each in a level of its own.
func fixTopic(topic string) string {
	if rest, shared := strings.CutPrefix(topic, "$share/"); shared {
		_, topic, _ = strings.Cut(rest, "/")
	}
	var levels []string
	for l := range strings.SplitSeq(fixTokens(topic), "/") {
		parts, why := parseParts(l)
		if why != "" || !strings.Contains(l, tokenStart) {
			levels = append(levels, l)
			continue
		}
		for _, p := range parts {
			if text := strings.Trim(p.name(), "-_.:"); text != "" {
				levels = append(levels, text)
			}
		}
	}
	for i, l := range levels {
		if last := i == len(levels)-1; last && strings.HasSuffix(l, wildAll) && len(l) > 1 {
			levels[i] = wildOne
		} else if !last && strings.Contains(l, wildAll) || strings.Contains(l, wildOne) {
			levels[i] = wildOne
		}
	}
	return strings.Join(levels, "/")
}

func keyHint(e *Entry) string {
	if e.Type == Pattern && strings.ContainsAny(e.Text, "{}") {
		return "keyType: String takes braces literally"
	}
	return ""
}

// digits reports whether a text is nothing but decimal numbers.
func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789 ,\n") == ""
}
