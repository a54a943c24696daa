package policycmd

import (
	"encoding/xml"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJUnit: a parser of XML reads what a report was made from.
func TestJUnit(t *testing.T) {
	t.Parallel()
	type failure struct {
		Message string `xml:"message,attr"`
	}
	type testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *failure `xml:"failure"`
	}
	type suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Cases    []testCase `xml:"testcase"`
	}
	type report struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []suite  `xml:"testsuite"`
	}
	const odd = "a\"b'<c>&amp;\t\r\n\u00e9\U0001F600"
	want := report{XMLName: xml.Name{Local: "testsuites"}, Suites: []suite{
		{odd, 2, 1, []testCase{{odd, "get k", nil}, {"user " + odd, odd, &failure{odd}}}},
		{"empty", 0, 0, nil},
		{"bad", 1, 0, []testCase{{"x\ufffdy\ufffd", "\ufffd\ufffd", nil}}},
	}}
	var text string
	for _, s := range want.Suites {
		var one junitSuite
		for _, c := range s.Cases {
			message := ""
			if c.Failure != nil {
				message = c.Failure.Message
			}
			if s.Name == "bad" {
				c.Class, c.Name = "x\xffy\x00", "\x1b\uffff"
			}
			one.add(c.Class, c.Name, message)
		}
		text += one.text(s.Name)
	}
	var got report
	if err := xml.Unmarshal([]byte(junitText(text)), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
