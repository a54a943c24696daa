package policy

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

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
		{regexp.MustCompile(`(?i)\$?\{+\s*(?:principals?\.)?client_?id\s*\}+`), tokenStart + tokenClient + "}"},
		{regexp.MustCompile(`(?i)\$?\{+\s*(?:principals?\.)?user_?name\s*\}+`), tokenStart + tokenUser + "}"},
		{regexp.MustCompile(`(?i)\$?\{+\s*(?:principals?\.)?attributes?\.([^{}\s]+)\s*\}+`), tokenStart + tokenAttribute + "$1}"},
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

// plain reports whether a text rather is a word than base64: it has no capital letter and no padding.
func plain(text string) bool {
	return len(text) > 3 && strings.Trim(text, "0123456789/") != "" && text == strings.ToLower(text) && !strings.ContainsAny(text, "+=")
}

// digits reports whether a text is nothing but decimal numbers.
func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789 ,\n") == ""
}

// dialect returns the pattern for a text in the syntax of topics, of regular expressions or of SQL, or the text.
func dialect(text string, key bool) string {
	if !strings.ContainsAny(text, `^\.%+#*`) {
		return text
	}
	better := text
	if inner, anchored := strings.CutPrefix(text, "^"); anchored && inner != "" {
		better = strings.TrimSuffix(inner, "$")
	}
	if strings.Contains(better, `\`) {
		better = strings.NewReplacer(`\d+`, "[0-9]*", `\d*`, "[0-9]*", `\w+`, "*", `\w*`, "*", `\S+`, "*", `\S*`, "*").Replace(better)
	}
	if strings.ContainsAny(better, ".]") {
		better = strings.NewReplacer(".*", "*", ".+", "*", "]+", "]*").Replace(better)
	}
	if prefix, sql := strings.CutSuffix(better, "%"); sql && strings.LastIndexAny(prefix, "/:.-_") == len(prefix)-1 {
		better = prefix + "*"
	}
	if key {
		levels := strings.Split(better, "/")
		for i, l := range levels {
			if l == wildOne || l == wildAll {
				levels[i] = "*"
			}
		}
		return strings.ReplaceAll(strings.Join(levels, "/"), "**", "*")
	}
	if prefix, found := strings.CutSuffix(better, wildAll); found {
		better = prefix + "*"
	} else if prefix, found := strings.CutSuffix(better, wildOne); found {
		better = prefix + "*"
	}
	return better
}

func grouped(text string) bool {
	_, group, open := strings.Cut(text, "(")
	group, _, closed := strings.Cut(group, ")")
	return open && closed && strings.Contains(group, "|")
}

// classAt returns the index of a class of characters such as [0-9] in a text, or -1.
func classAt(text string) int {
	for i := range len(text) {
		if rest := text[i:]; len(rest) >= 5 && rest[0] == '[' && rest[2] == '-' && rest[4] == ']' {
			return i
		}
	}
	return -1
}

// word returns a class of a pattern that rather is a word or an index, such as [current] or [0], or "".
func word(pattern string) string {
	for rest := pattern; ; {
		_, after, found := strings.Cut(rest, "[")
		class, next, closed := strings.Cut(after, "]")
		if !found || !closed {
			return ""
		}
		rest = next
		if class == "" || strings.ContainsAny(class, "-!^\\*?[{") || strings.ContainsFunc(class, func(r rune) bool { return r > 'z' || r < '0' }) {
			continue
		}
		if len(class) == 1 || !slices.IsSorted([]byte(class)) || len(slices.Compact([]byte(class))) < len(class) {
			return "[" + class + "]"
		}
	}
}

// near reports whether two names differ only in case or separators, in a letter that one of them lacks, in the order of two
// letters or, with other, in one letter.
func near(a, b string, other bool) bool {
	plain := strings.NewReplacer("-", "", "_", "")
	if a == b || strings.EqualFold(plain.Replace(a), plain.Replace(b)) {
		return a != b
	}
	begin := common(a, b)
	end := commonEnd(a, b)
	a, b = a[begin:len(a)-end], b[begin:len(b)-end]
	swapped := len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
	one := len(a)+len(b) == 1 || other && len(a) == 1 && len(b) == 1
	return (swapped && begin+end >= 2 || one && begin+end >= 3) && strings.IndexFunc(a+b, unicode.IsDigit) < 0
}
