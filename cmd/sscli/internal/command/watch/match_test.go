package watch_test

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
)

// replaced returns output with placeholders for versions and times.
func replaced(output string) string {
	output = regexp.MustCompile(`\d{13}:\d+:StateStore`).ReplaceAllString(output, "V")
	output = regexp.MustCompile(`\{"hlc"[^}]*\}`).ReplaceAllString(output, "V")
	return regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|\d\d:\d\d:\d\d\.\d{3}Z`).ReplaceAllString(output, "T")
}

// TestMatch runs watch --match while a matching key is created, in each form of output.
func TestMatch(t *testing.T) {
	for form, want := range map[string]string{
		"raw": "initial\tjob/1\tV\ta\nready\t1\nfound\tjob/2\tV\tunknown\tT\tT\tb\nend\tcount\n",
		"json": `{"op":"initial","key":"job/1","found":true,"value":"a","version":V,"time":"T"}` + "\n" +
			`{"op":"ready","keys":1,"time":"T"}` + "\n" +
			`{"op":"found","key":"job/2","found":true,"value":"b","version":V,"continuity":"unknown","from":"T","to":"T","time":"T"}` + "\n" +
			`{"op":"end","reason":"count","events":1,"time":"T"}` + "\n",
		"human":                            "T  initial  job/1  V  a\nT  ready    1 key\nT  found    job/2  V  (unknown since T)  b\nT  end      count, changes: 1\n",
		"template={{.op}} {{.continuity}}": "initial \nfound unknown\n",
	} {
		t.Run(form[:3], func(t *testing.T) {
			t.Parallel()
			store := emulator.Start(t)
			apptest.Put(t, store, "job/1", "a")
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				// Wait until the keys of the first scan are registered and read: SCAN, KEYNOTIFY, GET.
				if store.Await(ctx, func(s emulator.State) bool { return s.Registrations == 1 && s.Replies >= 3 }) == nil {
					apptest.Put(t, store, "other", "x")
					apptest.Put(t, store, "job/2", "b")
				}
			}()
			code, stdout, stderr := run(t, store.URL(), "--match", "job/*", "--rescan", "10ms", "-n", "1", "-o", form)
			if diff := cmp.Diff(want, replaced(stdout)); diff != "" || code != 0 || stderr != "" {
				t.Errorf("exit code %d, %q (-want +got):\n%s", code, stderr, diff)
			}
		})
	}
}

// TestMatchReady: a watch that finds no key reports that it is complete.
func TestMatchReady(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := run(t, emulator.Start(t).URL(), "--match", "none/*", "--for", "1ms")
	if want := "ready\t0\nend\tfor\n"; code != 0 || stdout != want || stderr != "" {
		t.Errorf("exit code %d, %q, %q; want %q", code, stdout, stderr, want)
	}
}

// TestMatchEnds: the conditions that end a watch apply to keys that the scan finds as well as to changes.
func TestMatchEnds(t *testing.T) {
	for _, tt := range []struct {
		args string
		want string // the end of the output
	}{
		{"--until set", "found\tjob\tV\tunknown\tT\tT\t{\"n\":1}\nend\tuntil\n"},
		{"--until set --no-initial", "end\tuntil\n"},
		{"--until set --field .n", "found\tjob\tV\tunknown\tT\tT\t-\t1\nend\tuntil\n"},
		{"missing -n 1 --fail-on-gap", "initial\tmissing\t-\nready\t1\nfound\tjob\tV\tunknown\tT\tT\t{\"n\":1}\nend\tcount\n"},
		{"-- false", ""},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("false"); err != nil && tt.args == "-- false" {
				t.Skip("this system has no program named false")
			}
			store := emulator.Start(t)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if store.Await(ctx, func(s emulator.State) bool { return s.Replies >= 4 }) == nil {
					apptest.Put(t, store, "job", `{"n":1}`)
				}
			}()
			args := append([]string{"--match", "j*", "--rescan", "10ms"}, strings.Fields(tt.args)...)
			code, stdout, stderr := run(t, store.URL(), args...)
			if wantCode := strings.Count(tt.args, "false"); code != wantCode || !strings.HasSuffix(replaced(stdout), tt.want) {
				t.Errorf("exit code %d, %q, want %q; %s", code, replaced(stdout), tt.want, stderr)
			}
		})
	}
}

func TestMatchWithoutScan(t *testing.T) {
	store := emulator.Start(t, emulator.Options{Variants: emulator.Variants{NoScan: true}})
	code, stdout, stderr := run(t, store.URL(), "--match", "*")
	if code != fault.CodeStore || stdout != "" || !strings.Contains(stderr, "has no SCAN") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}
