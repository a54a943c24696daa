package examples

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/testkit/freeport"
)

// The addresses of emulators on the pages. The tests replace them with free ports.
const (
	address = "127.0.0.1:1883"
	other   = "127.0.0.1:1884"
)

// configHome is the directory of the contexts on the pages.
const configHome = "/u/me/.config"

// wrapper runs sscli in a session: its output is formatted for a terminal if it goes to the session, and not
// if it goes to a pipe or a file.
const wrapper = `#!/bin/sh
[ /dev/fd/1 -ef "$EXAMPLE_OUTPUT" ] || unset SSCLI_OUTPUT
exec %s "$@"
`

// prologue defines "beside", which runs a command concurrently, as in another terminal, and waits until it
// has printed something. At the end of the page, the commands in "awaited" end by themselves, and the others
// are killed silently. Each command finds the $? of the previous one.
const prologue = `
trap 'for job in $(jobs -p); do kill -KILL "$job"; wait "$job"; done 2>/dev/null' EXIT
last=0
awaited=()
beside() {
	# exec, so that the job is the program itself and the trap kills it.
	eval "exec $1" >"$EXAMPLE_OUTPUT" 2>&1 </dev/null &
	for _ in {1..200}; do
		[ -s "$EXAMPLE_OUTPUT" ] && return
		sleep 0.05
	done
}
`

// run runs the commands of a page, in order, in one bash, and returns the output of each.
// A page that starts no emulator finds one running, with SSCLI_URL set.
func run(t *testing.T, binary, page string, examples []example) []string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sscli"), fmt.Sprintf(wrapper, quoted(binary)), 0o700)

	here, there := freeport.Address(t), freeport.Address(t)
	inTest := strings.NewReplacer(address, here, other, there)
	onPage := strings.NewReplacer(here, address, there, other, filepath.Join(dir, "config"), configHome)
	var script strings.Builder
	script.WriteString(prologue)
	fmt.Fprintf(&script, "export EXAMPLE_OUTPUT=%s\n", quoted(filepath.Join(dir, "serve.out")))
	if !slices.ContainsFunc(examples, func(e example) bool { return isServe(e.command) }) {
		fmt.Fprintf(&script, "beside 'sscli serve --listen %s'\nexport SSCLI_URL=mqtt://%s\n", here, here)
	}
	for i, e := range examples {
		command := inTest.Replace(e.command)
		fmt.Fprintf(&script, "export EXAMPLE_OUTPUT=%s\n", quoted(outputFile(dir, i)))
		if isServe(command) {
			if !strings.Contains(command, here) {
				command += " --listen " + here
			}
			fmt.Fprintf(&script, "beside %s\nlast=0\n", quoted(command))
			continue
		}
		if e.beside {
			fmt.Fprintf(&script, "beside %s\nawaited+=($!)\nlast=0\n", quoted(command))
			continue
		}
		fmt.Fprintf(&script, "(exit $last); eval %s >\"$EXAMPLE_OUTPUT\" 2>&1 </dev/null\nlast=$?\n", quoted(command))
	}
	script.WriteString("[ ${#awaited[@]} = 0 ] || wait \"${awaited[@]}\"\n") // without operands, wait would also wait for servers
	name := filepath.Join(dir, "session")
	write(t, name, script.String(), 0o600)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", name)
	cmd.Dir = likeRoot(t)
	cmd.Env = append(cleanEnviron(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"),
		"XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "TMPDIR="+t.TempDir(), "SSCLI_OUTPUT=human", "TERM=dumb", "LC_ALL=C", "TZ=UTC")
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); len(out) > 0 || ctx.Err() != nil {
		t.Fatalf("bash: %v\n%s", err, out)
	}
	got := make([]string, len(examples))
	for i, e := range examples {
		out, err := os.ReadFile(outputFile(dir, i))
		if err != nil {
			t.Fatalf("%s:%d: $ %s: did not run", page, e.line, e.command)
		}
		got[i] = onPage.Replace(string(out))
	}
	return got
}

// likeRoot returns a directory that looks like the root of the repository, in which examples may create
// files.
func likeRoot(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		target, err := filepath.Abs(filepath.Join(root, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// isServe reports whether a command runs concurrently with the following ones.
func isServe(command string) bool {
	return command == "sscli serve" || strings.HasPrefix(command, "sscli serve --listen ")
}

func outputFile(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("%03d.out", i)) }

func build(t *testing.T, root, binary string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program")
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/sscli")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
}

// cleanEnviron returns the environment without the variables that configure sscli.
func cleanEnviron() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SSCLI_") && !strings.HasPrefix(kv, "AIO_") && !strings.HasPrefix(kv, "CLICOLOR") {
			env = append(env, kv)
		}
	}
	return env
}

func write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// quoted returns s as one word for the shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
