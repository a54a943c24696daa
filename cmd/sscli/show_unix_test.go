//go:build unix

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
)

// storeOf starts a store with these keys, and returns it with a session.
func storeOf(t *testing.T, values map[string]string) (*emulator.Server, *client.Session) {
	t.Helper()
	server := emulator.Start(t)
	s, err := client.Dial(t.Context(), client.Options{Address: server.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for key, value := range values {
		if _, err := s.Set(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	return server, s
}

// changingCells matches versions and times in a table.
var changingCells = regexp.MustCompile(`(?m)\d{13}:\d+:StateStore( +|$)|^\d\d:\d\d:\d\d\.\d{3}Z|[\dhms.]+ ago( +)`)

// scrubCells is scrubScreen for a screen that may contain a table. Its columns keep their widths unless they contain
// versions, whose lengths differ.
func scrubCells(screen string) string {
	if strings.Contains(screen, "\nversion ") {
		return scrubScreen(screen)
	}
	versions := false
	screen = changingCells.ReplaceAllStringFunc(screen, func(s string) string {
		word := "AGE"
		switch {
		case strings.Contains(s, "StateStore"):
			word = "VERSION"
			versions = true
		case s[2] == ':':
			word = "CLOCK"
		}
		return fmt.Sprintf("%-*s", len(s), word)
	})
	if !versions {
		return screen
	}
	return regexp.MustCompile(` *(\n|$)`).ReplaceAllString(regexp.MustCompile(`  +`).ReplaceAllString(screen, "  "), "$1")
}

func document() string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, `,{"id":%d,"name":"%s"}`, i, strings.Repeat("x", 100))
	}
	return `{"lines":[` + b.String()[1:] + `]}`
}

// TestValuesOnScreen: values fit a screen of any width. Values are cut, but keys and versions are not.
func TestValuesOnScreen(t *testing.T) {
	t.Parallel()
	server, _ := storeOf(t, map[string]string{
		"json":      `{"mode":"auto","setpoint":21.50,"tags":["a",null]}`,
		"document":  document(),
		"long":      strings.Repeat("0123456789", 123456),
		"lines":     strings.Repeat("a line\tof text\n", 1000),
		"binary":    "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff",
		"bytes":     strings.Repeat("\x00\xff\x1b[2J", 1000),
		"hostile":   "\x1b[2J\x1b]0;title\x07 \u202efdp \u009b31m",
		"two words": "value",
		"wide":      "設定値" + strings.Repeat("値", 100),
	})
	const more = "(?s)^.*\n"
	// How much of a value fits depends on the length of its age.
	cut := regexp.MustCompile(`(\{"mode": "auto"|0123456789|設定値).*…`)
	for _, tt := range []struct {
		args   []string
		width  uint16
		screen string // the whole screen; with the prefix more, only the end of the screen
	}{
		{[]string{"get", "json"}, 80, "{\n  \"mode\": \"auto\",\n  \"setpoint\": 21.50,\n  \"tags\": [\n    \"a\",\n    null\n  ]\n}\nversion VERSION  (AGE)"},
		{[]string{"get", "json"}, 30, "{\"mode\": \"auto\", \"setpoint\": 21.50, \"tags\": [\"a\", null]}\nversion VERSION  (AGE)"},
		{[]string{"get", "json", "--show", "text"}, 80, "{\"mode\":\"auto\",\"setpoint\":21.50,\"tags\":[\"a\",null]}\nversion VERSION  (AGE)"},
		{[]string{"get", "binary"}, 80, "00000000  89 50 4e 47 0d 0a 1a 0a  00 00 00 0d 49 48 44 52  |.PNG........IHDR|\n00000010  ff                                                |.|\n17 bytes\nversion VERSION  (AGE)"},
		{[]string{"get", "binary"}, 60, "00000000  89 50 4e 47 0d 0a 1a 0a  |.PNG....|\n00000008  00 00 00 0d 49 48 44 52  |....IHDR|\n00000010  ff                       |.|\n17 bytes\nversion VERSION  (AGE)"},
		{[]string{"get", "hostile"}, 80, "\"\\x1b[2J\\x1b]0;title\\x07 \\xe2\\x80\\xaefdp \\xc2\\x9b31m\"\nversion VERSION  (AGE)"},
		{[]string{"get", "long"}, 80, more + "… 1.2 MB in all, -o raw for the bytes\nversion VERSION  (AGE)"},
		{[]string{"get", "long"}, 120, more + "… 1.2 MB in all, -o raw for the bytes\nversion VERSION  (AGE)"},
		{[]string{"get", "document"}, 80, more + "… 4.8 kB in all, -o raw for the bytes\nversion VERSION  (AGE)"},
		{[]string{"get", "lines"}, 80, more + "a line  of text\n… 15.0 kB in all, -o raw for the bytes\nversion VERSION  (AGE)"},
		{[]string{"get", "bytes"}, 120, more + "… 6.0 kB in all, -o raw for the bytes\nversion VERSION  (AGE)"},
		{[]string{"get", "json", "two words", "missing", "long", "wide"}, 80, `
json  VERSION  AGE  {"mode": "auto"…
"two words"  VERSION  AGE  value
missing  (nil)
long  VERSION  AGE  0123456789…
wide  VERSION  AGE  設定値…`},
		{[]string{"get", "json", "two words", "missing"}, 120, `
json  VERSION  AGE  {"mode": "auto", "setpoint": 21.50, "tags": ["a", null]}
"two words"  VERSION  AGE  value
missing  (nil)`},
		{[]string{"scan", "[jlt]*"}, 80, "json\nlines\nlong\n\"two words\""},
		{[]string{"scan", "[jt]*"}, 8, "json\n\"two words\""}, // a key that is cut could not be copied
		{[]string{"scan", "x*"}, 80, "sscli: no key matches \"x*\""},
		{[]string{"scan", "x*", "-q"}, 80, ""},
	} {
		t.Run(fmt.Sprint(tt.args, tt.width), func(t *testing.T) {
			t.Parallel()
			u := seat{args: tt.args, server: server, width: tt.width, height: 24}.start(t)
			u.leaves()
			got := u.text()
			if strings.HasPrefix(tt.screen, more) {
				if rows := strings.Count(got, "\n"); rows > 22 || !strings.HasSuffix(scrubCells(got), strings.TrimPrefix(tt.screen, more)) {
					t.Errorf("%d rows:\n%s", rows, got)
				}
				return
			}
			if diff := cmp.Diff(strings.TrimPrefix(tt.screen, "\n"), cut.ReplaceAllString(scrubCells(got), "$1…")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWatchOnScreen: the rows of a watch are aligned in columns from the first row. A value that does not fit gets a
// line of its own below.
func TestWatchOnScreen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		width uint16
		want  string
	}{
		{80, `
CLOCK  initial  a  VERSION  1
CLOCK  initial  missing  (nil)
CLOCK  initial  thermostat/setpoint  VERSION
  {"mode": "auto"}
CLOCK  set  missing  VERSION
  a text that does not fit into 80 columns
CLOCK  delete  a  VERSION
CLOCK  set  thermostat/setpoint  VERSION
  (3 bytes) 00 01 02
CLOCK  end  count, changes: 3`},
		{120, `
CLOCK  initial  a  VERSION  1
CLOCK  initial  missing  (nil)
CLOCK  initial  thermostat/setpoint  VERSION  {"mode": "auto"}
CLOCK  set  missing  VERSION  a text that does not fit into 80 columns
CLOCK  delete  a  VERSION
CLOCK  set  thermostat/setpoint  VERSION  (3 bytes) 00 01 02
CLOCK  end  count, changes: 3`},
	} {
		t.Run(fmt.Sprint(tt.width), func(t *testing.T) {
			server, s := storeOf(t, map[string]string{"a": "1", "thermostat/setpoint": `{"mode":"auto"}`})
			u := seat{args: []string{"watch", "-n", "3", "a", "missing", "thermostat/setpoint"}, server: server, width: tt.width, height: 24}.start(t)
			u.await("three rows", func(text string) bool { return strings.Count(text, "initial") == 3 })
			if _, err := s.Set(t.Context(), "missing", []byte("a text that does not fit into 80 columns")); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Del(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Set(t.Context(), "thermostat/setpoint", []byte{0, 1, 2}); err != nil {
				t.Fatal(err)
			}
			if code := u.leaves(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), scrubCells(u.text())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLockHoldLine: the lease is shown in one line, which goes away when the lock is released.
func TestLockHoldLine(t *testing.T) {
	t.Parallel()
	for _, width := range []uint16{30, 80} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			server, _ := storeOf(t, nil)
			u := seat{args: []string{"lock", "hold", "build", "--ttl", "30s"}, server: server, width: width, height: 24}.start(t)
			line := `acquired \d\.\ds ago, expires in \d+\.\ds`
			if width == 30 {
				line = `acquired \d\.\ds …`
			}
			u.await("the line", regexp.MustCompile(`\nlock "build": `+line+`$`).MatchString)
			u.await("a renewal", func(text string) bool { return strings.Contains(text, `lock "build": renewed `) })
			if n := strings.Count(u.screen.String(), "lock \"build\""); n != 1 {
				t.Errorf("%d lines:\n%s", n, u.screen)
			}
			u.types("\x03")
			if code := u.leaves(); code != -1 {
				t.Errorf("exit code %d, want an end by SIGINT", code)
			}
			got := u.text()
			if strings.Contains(got, "expires") || !strings.Contains(got, `sscli: released lock "build"`) {
				t.Errorf("at the end:\n%s", got)
			}
		})
	}
}
