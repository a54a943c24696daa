package examples

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// An example is a command and its output.
type example struct {
	line    int // line number of the command, from 1
	command string
	output  string
	beside  bool // runs in a separate terminal
}

const (
	opening = "```console"
	aside   = opening + " terminal"
	closing = "```"
)

// parse returns the examples in a Markdown text.
func parse(text string) ([]example, error) {
	var found []example
	within, beside := 0, false // line number and kind of the opening fence
	for i, line := range strings.Split(text, "\n") {
		switch {
		case within == 0 && (line == opening || line == aside):
			within, beside = i+1, line == aside
		case within == 0:
		case line == closing:
			within = 0
		case strings.HasPrefix(line, "$ "):
			found = append(found, example{line: i + 1, command: line[2:], beside: beside})
		case i == within:
			return nil, fmt.Errorf("line %d: want a command after %q, got %q", i+1, "$ ", line)
		default:
			found[len(found)-1].output += line + "\n"
		}
	}
	if within != 0 {
		return nil, fmt.Errorf("line %d: the block has no end", within)
	}
	return found, nil
}

// replaced returns the text with its outputs replaced by those of the examples.
func replaced(text string, examples []example) string {
	var b strings.Builder
	next, within := 0, false
	for line := range strings.Lines(text) {
		bare := strings.TrimSuffix(line, "\n")
		switch {
		case !within:
			within = bare == opening || bare == aside
			b.WriteString(line)
		case bare == closing:
			within = false
			b.WriteString(line)
		case strings.HasPrefix(line, "$ "):
			b.WriteString(line + examples[next].output)
			next++
		}
	}
	return b.String()
}

// A transcript replaces the texts that differ from run to run by names. Within one run, the same text always
// gets the same name.
type transcript struct {
	names map[string]string
}

func newTranscript() *transcript { return &transcript{make(map[string]string)} }

var (
	jsonVersion  = regexp.MustCompile(`\{"hlc":"(\d{13}:\d+:StateStore)","wall_ms":\d+,"counter":\d+,"node":"StateStore","time":"[^"]*"\}`)
	humanVersion = regexp.MustCompile(`(\d{13}:\d+:StateStore)  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
)

// changing matches the texts that differ from run to run. Those with a name are numbered: the same text gets
// the same number.
var changing = []struct {
	name    string
	pattern *regexp.Regexp
	as      string
}{
	{"version", regexp.MustCompile(`\b\d{13}:\d+:StateStore\b`), ""},
	{"clock", regexp.MustCompile(`\b\d{15}:\d{5}:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), ""},
	{"client", regexp.MustCompile(`\bsscli-[a-z0-9]{16}\b`), ""},
	{"correlation", regexp.MustCompile(`\b[0-9a-f]{32}\b`), ""},
	{"", regexp.MustCompile(`\((\d+(\.\d+)?(ms|s|m|h|d))+ ago\)`), "(<age> ago)"},
	{"", regexp.MustCompile(`  (\d+(\.\d+)?(ms|s|m|h|d))+ ago  +`), "  <age> ago  "}, // in a column
	{"", regexp.MustCompile(`"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`), `"time":<time>`},
	{"", regexp.MustCompile(`"rtt_ms":\d+(\.\d+)?\b`), `"rtt_ms":<ms>`},
	{"", regexp.MustCompile(`(?m)^ *\d+\.\d{6} (->|<-)`), "<seconds> $1"},
	{"", regexp.MustCompile(`(?m)( unknown(?:, \d+ skipped)?); \d+\.\d{3}s, \d+/s$`), "$1; <elapsed>, <rate>"},
	{"", regexp.MustCompile(`(?m)( bytes?(?:, \d+ (?:missing|refused))*); \d+\.\d{3}s, \d+/s$`), "$1; <elapsed>, <rate>"},
	{"", regexp.MustCompile(`(?m)( equal(?:, \d+ refused)?); \d+\.\d{3}s$`), "$1; <elapsed>"},
	{"", regexp.MustCompile(`(?m)( unchanged(?:, \d+ [a-z ]+)*); \d+\.\d{3}s$`), "$1; <elapsed>"},
	{"", regexp.MustCompile(`\(\d+\.\d{3}s, \d+/s\)`), "(<elapsed>, <rate>)"},
	{"", regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d{3}Z  `), "<clock>  "},
}

// normal replaces the parts of a text that differ from run to run by names. A complete version becomes a name
// only if its parts agree.
func (t *transcript) normal(text string) string {
	text = jsonVersion.ReplaceAllStringFunc(text, func(found string) string {
		hlc := jsonVersion.FindStringSubmatch(found)[1]
		var ms int64
		var counter int
		fmt.Sscanf(hlc, "%d:%d:", &ms, &counter)
		want := fmt.Sprintf(`{"hlc":%q,"wall_ms":%d,"counter":%d,"node":"StateStore","time":%q}`, hlc, ms, counter, instant(ms))
		if found != want {
			return found
		}
		return "{" + hlc + "}"
	})
	text = humanVersion.ReplaceAllStringFunc(text, func(found string) string {
		hlc := humanVersion.FindStringSubmatch(found)[1]
		var ms int64
		fmt.Sscanf(hlc, "%d:", &ms)
		if found != hlc+"  "+instant(ms) {
			return found
		}
		return hlc + "  <its time>"
	})
	for _, c := range changing {
		if c.name == "" {
			text = c.pattern.ReplaceAllString(text, c.as)
			continue
		}
		text = c.pattern.ReplaceAllStringFunc(text, func(found string) string {
			if t.names[found] == "" {
				n := 1
				for _, name := range t.names {
					if strings.HasPrefix(name, "<"+c.name+" ") {
						n++
					}
				}
				t.names[found] = fmt.Sprintf("<%s %d>", c.name, n)
			}
			return t.names[found]
		})
	}
	return text
}

// instant formats a wall clock time as sscli does.
func instant(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
