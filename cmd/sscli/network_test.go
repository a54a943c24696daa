package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
)

// A networkCase runs one command as its user would.
type networkCase struct {
	args  string // words after the command
	stdin string // also the content of the file input
	talks bool   // the command sends something to the broker
	own   bool   // the command is itself a broker, on loopback
}

// networkCases returns at least one case for each command that can be run, by the command's path without the program
// name. A new command needs a case here.
func networkCases() map[string][]networkCase {
	return map[string][]networkCase{
		"":                      {{args: "-", stdin: "set a 1\nget a\n", talks: true}, {args: "--embedded -", stdin: "get a\n", own: true}, {}},
		"get":                   {{args: "a", talks: true}, {args: "a b c", talks: true}, {args: "a --embedded", own: true}},
		"set":                   {{args: "a 1", talks: true}},
		"del":                   {{args: "a b", talks: true}},
		"vdel":                  {{args: "a 1", talks: true}},
		"call":                  {{args: "GET a", talks: true}},
		"keynotify":             {{args: "a", talks: true}},
		"watch":                 {{args: "a --for 50ms", talks: true}},
		"scan":                  {{talks: true}},
		"diff":                  {{args: "input", talks: true}, {args: "--to nowhere"}},
		"apply":                 {{args: "input", stdin: `{"key":"a","value":"1"}`, talks: true}},
		"forward":               {{}},
		"pod":                   {{}},
		"dataset":               {{}},
		"dataset load":          {{args: "a input", stdin: `{"a":1}`, talks: true}},
		"dataset show":          {{args: "a", talks: true}},
		"dataset diff":          {{args: "a input", stdin: `{"a":1}`, talks: true}},
		"dataset match":         {{args: "a b=1", talks: true}, {args: "a b=1 --data ."}},
		"dataset check":         {{args: "input", stdin: `{"datasets":[{"key":"a","inputs":["$source.b","$context.b"],"expression":"$1 == $2"}]}`, talks: true}, {args: "input --data ."}},
		"policy":                {{}},
		"policy check":          {{args: "input", stdin: `[{"principals":{"usernames":["a"]}}]`}},
		"policy can":            {{args: "input --read a", stdin: `[{"principals":{"usernames":["a"]}}]`}},
		"policy who":            {{args: "input a", stdin: `[{"principals":{"usernames":["a"]}}]`}},
		"policy test":           {{args: "input"}},
		"policy table":          {{args: "input", stdin: `[{"principals":{"usernames":["a"]}}]`}},
		"policy diff":           {{args: "input input", stdin: `[{"principals":{"usernames":["a"]}}]`}},
		"policy suggest":        {{args: "--read a"}},
		"edit":                  {{args: "a", talks: true}},
		"export":                {{talks: true}},
		"import":                {{args: "input", stdin: `{"key":"a","value":"1"}`, talks: true}},
		"top":                   {{}},
		"explain":               {{args: "a --lock l", talks: true}},
		"lock":                  {{}},
		"lock acquire":          {{args: "l --holder h --try", talks: true}},
		"lock break":            {{args: "taken --yes", talks: true}},
		"lock hold":             {{args: "held --try", talks: true}},
		"lock run":              {{args: "l2 -- true", talks: true}, {args: "l3 --embedded -- true", own: true}},
		"lock list":             {{talks: true}, {args: "l --observe 20ms", talks: true}},
		"lock trace":            {{args: "l --for 20ms", talks: true}},
		"lock release":          {{args: "l --holder h", talks: true}},
		"lock renew":            {{args: "l --holder h --ttl 15s", talks: true}},
		"lock status":           {{args: "l", talks: true}},
		"shell":                 {{}},
		"check":                 {{args: "a --max-age 1h", talks: true}, {args: "--lint -f input", stdin: "checks: [{key: a}]"}},
		"ping":                  {{args: "-n 2 --interval 1ms", talks: true}},
		"batch":                 {{args: "-", stdin: "get a\n", talks: true}},
		"serve":                 {{args: "-- true", own: true}, {args: "--ws 127.0.0.1:0 -- true", own: true}},
		"gateway":               {{args: "--listen 127.0.0.1:0 -- true", talks: true}},
		"doctor":                {{talks: true}, {args: "--write", talks: true}},
		"bench":                 {{args: "-n 10 --keys 2", talks: true}},
		"context":               {{}},
		"context list":          {{}},
		"context rm":            {{args: "nothing"}},
		"context set":           {{args: "elsewhere -u mqtt://192.0.2.1"}},
		"context show":          {{}},
		"context use":           {{args: "none"}},
		"hlc":                   {{}},
		"hlc now":               {{}},
		"hlc parse":             {{args: "1696374425000:0:a"}},
		"hlc compare":           {{args: "1696374425000:0:a 1696374425000:0:b"}},
		"man":                   {{args: "pages"}},
		"version":               {{}},
		"help":                  {{}, {args: "get"}, {args: "environment"}},
		"completion":            {{}},
		"completion bash":       {{}},
		"completion fish":       {{}},
		"completion powershell": {{}},
		"completion zsh":        {{}},
	}
}

// runnable returns the paths of all commands that can be run.
func runnable(cmd *cobra.Command) []string {
	var paths []string
	if cmd.Runnable() {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		paths = append(paths, path)
	}
	for _, sub := range cmd.Commands() {
		paths = append(paths, runnable(sub)...)
	}
	return paths
}

// networkAddress matches a system call in strace's output that leads out of the process, with its address.
var networkAddress = regexp.MustCompile(`\b(?:connect|sendto|sendmsg|sendmmsg)\(.*(?:sa_family=(AF_(?:UNIX|NETLINK)\b[^}]*)|htons\((\d+)\).*?"([0-9a-fA-F.:]+)")`)

// destinations returns the addresses in the output of strace, each once.
func destinations(trace string) []string {
	var found []string
	for line := range strings.Lines(trace) {
		m := networkAddress.FindStringSubmatch(line)
		switch {
		case m == nil, strings.HasPrefix(m[1], "AF_NETLINK"): // AF_NETLINK asks the kernel
			continue
		case m[1] != "":
			found = append(found, m[1])
		default:
			found = append(found, m[3]+":"+m[2])
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// straced runs the program under strace and returns the addresses that it used.
func straced(t *testing.T, program, url, stdin string, args ...string) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "input"), []byte(stdin), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "strace")
	cmd := exec.Command("strace", append([]string{"-f", "-qq", "-e", "trace=network", "-o", out, program}, args...)...)
	cmd.Stdin, cmd.Dir = strings.NewReader(stdin), dir
	cmd.Env = []string{"EDITOR=true", "HOME=" + dir, "PATH=" + os.Getenv("PATH"), "SSCLI_URL=" + url}
	said, err := cmd.CombinedOutput()
	if exit, failed := err.(*exec.ExitError); err != nil && !failed || failed && !slices.Contains([]int{fault.CodeNo, fault.CodeUsage, fault.CodeConnection, fault.CodeFencing, fault.CodeLockLost}, exit.ExitCode()) {
		t.Fatalf("%q: %v\n%s", args, err, said)
	}
	trace, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return destinations(string(trace))
}

// TestNoOtherNetwork runs every command and checks that it connects only to the configured broker, and not even to a
// name server.
func TestNoOtherNetwork(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skipf("strace is not installed: %v", err)
	}
	if out, err := exec.Command("strace", "-f", "-qq", "-e", "trace=network", "true").CombinedOutput(); err != nil {
		t.Skipf("the system refuses strace: %v\n%s", err, out)
	}
	program := buildProgram(t)
	server := emulator.Start(t)
	address := server.Addr().String()

	// Check that the test can see a connection.
	if got := straced(t, program, "mqtt://127.0.0.1:1", "", "get", "a"); !slices.Equal(got, []string{"127.0.0.1:1"}) {
		t.Fatalf("a connection to 127.0.0.1:1 was seen as %q", got)
	}

	straced(t, program, server.URL(), "", "set", "held", "another")

	root := cmdline.NewRoot(newApp())
	root.InitDefaultHelpCmd()

	cases := networkCases()
	for _, path := range runnable(root) {
		if len(cases[path]) == 0 {
			t.Errorf("no case for sscli %s: add one to networkCases", path)
		}
		for _, c := range cases[path] {
			args := strings.Fields(path + " " + c.args)
			got := straced(t, program, server.URL(), c.stdin, args...)
			if c.talks && !slices.Contains(got, address) {
				t.Errorf("sscli %s does not go to the broker: %q", strings.Join(args, " "), got)
			}
			for _, to := range got {
				if to != address && !(c.own && strings.HasPrefix(to, "127.0.0.1:")) {
					t.Errorf("sscli %s goes to %s; the broker is %s", strings.Join(args, " "), to, address)
				}
			}
		}
		delete(cases, path)
	}
	for path := range cases {
		t.Errorf("networkCases has %q, which is no command", path)
	}
}
