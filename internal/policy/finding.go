package policy

import (
	"regexp"
	"slices"
	"strings"
)

// A Severity says how bad a finding is.
type Severity int

// The severities, in increasing order.
const (
	Info    Severity = iota // works, but not for everybody
	Warning                 // works differently from what it seems
	Error                   // does not work
)

var severityNames = []string{"info", "warning", "error"}

func (s Severity) String() string { return severityNames[s] }

// ParseSeverity parses info, warning or error.
func ParseSeverity(name string) (s Severity, ok bool) {
	i := slices.Index(severityNames, name)
	return Severity(max(i, 0)), i >= 0
}

// A Finding is a mistake in a policy.
type Finding struct {
	ID            string // of its kind, such as SS014
	File          string
	Line          int
	Severity      Severity
	Message, Hint string
	Mend          *Mend   // what Hint says, tried; nil = Hint is not one change of the policy
	Proofs        []Proof // what the rules decide, if the finding is about that
}

// A Proof is a decision of the rules.
type Proof struct {
	Deed
	Allowed bool
}

// allowing returns the proof that a principal may do something.
func allowing(who Principal, a Action) Proof { return Proof{Deed{Principal: who, Action: a}, true} }

// ignores has the ids that the comments of a file silence, by line; 0 = in the whole file.
type ignores map[int]string

func (g ignores) has(f Finding) bool {
	return strings.Contains(g[0], f.ID) || strings.Contains(g[f.Line], f.ID)
}

// readIgnores reads comments such as "# sscli:ignore SS021: why". A comment is for its own line or, if the line has nothing
// else, for the next line that has. Before all else, it is for the file.
func readIgnores(source []byte) ignores {
	all, waiting, begun, n := make(ignores), "", false, 0
	comment := regexp.MustCompile(`#\s*sscli:ignore\s+(SS\d{3}(?:\s*,\s*SS\d{3})*)`)
	for line := range strings.Lines(string(source)) {
		n++
		ids := ""
		if !strings.Contains(line, "sscli:ignore") {
			// most lines
		} else if match := comment.FindStringSubmatch(line); match != nil {
			ids = match[1]
		}
		switch text := strings.TrimSpace(line); {
		case text == "":
		case strings.HasPrefix(text, "#") && !begun:
			all[0] += ids
		case strings.HasPrefix(text, "#"):
			waiting += ids
		default:
			all[n], waiting, begun = ids+waiting, "", true
		}
	}
	return all
}
