package policycmd

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A junitSuite is a suite in a report in the form of JUnit. It is written without encoding/xml, whose tables would cost
// each start of sscli 40 µs.
type junitSuite struct {
	tests, failures int
	cases           strings.Builder
}

// add adds an expectation. failure is empty if the expectation is met.
func (s *junitSuite) add(who, words, failure string) {
	s.tests++
	fmt.Fprintf(&s.cases, "    <testcase classname=%s name=%s>", attribute(who), attribute(words))
	if failure != "" {
		s.failures++
		fmt.Fprintf(&s.cases, "\n      <failure message=%s></failure>\n    ", attribute(failure))
	}
	s.cases.WriteString("</testcase>\n")
}

func (s *junitSuite) text(file string) string {
	return fmt.Sprintf("  <testsuite name=%s tests=\"%d\" failures=\"%d\">\n%s  </testsuite>\n", attribute(file), s.tests, s.failures, &s.cases)
}

// junitText returns the report with the texts of all suites.
func junitText(suites string) string {
	return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n" + suites + "</testsuites>\n"
}

// attribute returns the value of an attribute. U+FFFD replaces what XML cannot have (XML 1.0, 2.2).
func attribute(value string) string {
	var b strings.Builder
	for _, r := range value {
		switch {
		case strings.ContainsRune("\"&<>\t\n\r", r):
			fmt.Fprintf(&b, "&#%d;", r)
		case r < ' ', r == 0xFFFE, r == 0xFFFF:
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r) // as U+FFFD if it is not UTF-8
		}
	}
	return `"` + b.String() + `"`
}
