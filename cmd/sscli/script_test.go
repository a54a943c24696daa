package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/testkit/systext"
	"github.com/sscli/sscli/internal/testkit/testcert"
	"github.com/sscli/sscli/internal/testkit/viatest"
	"github.com/sscli/sscli/internal/wire"
)

var update = flag.Bool("update", false, "rewrite the expected output of the scripts")

// originalPath names the variable with the PATH from before testscript put the programs of this test in front, among
// them a fake kubectl.
const originalPath = "SSCLI_TEST_PATH"

func TestMain(m *testing.M) {
	if process.GuardMain() || lockChild() {
		return
	}
	// Set these as main does, for the commands that tests and workers run in this process.
	cobra.EnableCaseInsensitive, cobra.EnableCommandSorting = true, false
	if os.Args[0] == workerName {
		workerMain()
	}
	if os.Getenv(originalPath) == "" {
		_ = os.Setenv(originalPath, os.Getenv("PATH")) // cannot fail
	}
	programs := map[string]func(){"sscli": hintingMain, "statestore-cli": hintingMain, "kubectl-sscli": hintingMain, "kubectl": func() { os.Exit(viatest.Main()) }}
	if _, isProgram := programs[strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")]; !isProgram {
		// Programs that tests start must not inherit the signals that nohup(1) or a background job ignores. A signal
		// that is caught here has its default effect there.
		for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
			if signal.Ignored(s) {
				signal.Notify(make(chan os.Signal, 1), s)
			}
		}
		if flag.Parse(); flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
			_ = flag.Set("test.parallel", "8") // most tests wait for another process, not for the CPU
		}
	}
	testscript.Main(m, programs)
}

// TestScript runs command lines as users type them. The scripts use testscript's own commands, and these:
//
//	code N sscli ARG...               run sscli in a worker (see workers) and check its exit code
//	code N PROGRAM ARG...             run PROGRAM in a process and check its exit code
//	signal SIG STATE N PROGRAM ARG... the same, and send SIG once the emulator is in this state
//	emulator OPTION...                start an emulator and set SSCLI_URL to its address, see emulatorOptions
//	silent-listener [HEX]             the same with a server that sends nothing, or answers the first bytes with HEX
//	full-listener                     the same with a server that does not even accept connections
//	fastforward DURATION              move the emulator's clock forward
//	mosquitto                         run a Mosquitto, on the condition [mosquitto], and set SSCLI_URL to its address
//	begins FILE FILE                  check that the second file begins with the first
//	proxy [NAME:PASSWORD]             run an HTTP proxy to the emulator, on the port PROXYPORT
//
// code and signal append the command, its output and its exit code to the file session. Lines of standard error begin
// with `! ` there. What differs between runs is replaced by names, there and on stdout and stderr: V1, V2, … are
// versions in the order of their appearance.
func TestScript(t *testing.T) {
	t.Parallel()
	params := scriptParams(t, false)
	params.Dir, params.UpdateScripts = "testdata/script", *update
	testscript.Run(t, params)
}

// TestScriptTimeouts checks that each timeout in a script is long enough for a busy machine to send the request in
// time.
func TestScriptTimeouts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	timeout := regexp.MustCompile(`(?m)^[^>!].*sscli.* (?:-t|--timeout)[ =]?([\d.]+m?s)\b`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range timeout.FindAllSubmatch(text, -1) {
			if d, err := time.ParseDuration(string(m[1])); err != nil || d < 2*time.Second {
				t.Errorf("%s: %q: timeout %s (%v), want at least 2s", filepath.Base(file), m[0], m[1], err)
			}
		}
	}
}

// scriptParams returns the parameters for scripts whose emulators are servers, or stores attached to a Mosquitto.
func scriptParams(t *testing.T, attached bool) testscript.Params {
	workers := newWorkers(t)
	return testscript.Params{
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(cond string) (bool, error) {
			if cond == "mosquitto" {
				return haveMosquitto(), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("TERM", "dumb")
			env.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each sscli of a race test takes a second longer
			env.Setenv(hintsFile, filepath.Join(env.WorkDir, ".hints"))
			env.Values[scriptKey{}] = &script{names: make(map[string]string), attached: attached, workers: workers, root: cmdline.NewRoot(newApp())}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":            scriptCode,
			"signal":          scriptSignal,
			"emulator":        scriptEmulator,
			"silent-listener": scriptSilentListener,
			"full-listener":   scriptFullListener,
			"fastforward":     scriptFastForward,
			"mosquitto":       scriptMosquitto,
			"begins":          scriptBegins,
			"proxy":           scriptProxy,
		},
	}
}

// A script is the state that the commands of one script share.
type script struct {
	workers  *workers
	attached bool              // whether emulators are stores attached to a Mosquitto
	server   *emulator.Server  // the last emulator, unless it is an attached store
	names    map[string]string // version to V1, V2, …
	root     *cobra.Command    // all commands, to check hints
}

type scriptKey struct{}

func scriptOf(ts *testscript.TestScript) *script { return ts.Value(scriptKey{}).(*script) }

func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	scriptOf(ts).run(ts, want, args[1:], args[1:])
}

// run runs command, checks its exit code, and records it as typed.
func (s *script) run(ts *testscript.TestScript, want int, typed, command []string) {
	stdout, stderr, got := s.execute(ts, command)
	stdout, stderr = s.scrub(ts, stdout), s.scrub(ts, stderr)
	fmt.Fprint(ts.Stdout(), stdout)
	fmt.Fprint(ts.Stderr(), stderr)
	s.note(ts, typed, stdout, stderr, got)
	for _, hint := range readHints(ts.Getenv(hintsFile)) {
		if bad := badHint(s.root, hint); bad != "" && command[0] == "sscli" { // the flags of statestore-cli are different
			ts.Fatalf("%s: the hint names %s, which sscli does not have: %s", strings.Join(typed, " "), bad, hint)
		}
	}
	ts.Check(os.RemoveAll(ts.Getenv(hintsFile)))
	if got != want && !*update { // -update records the code, and the next run checks it
		ts.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(typed, " "), got, want, stdout, stderr)
	}
}

// execute runs command in a worker if possible, and otherwise in a process.
func (s *script) execute(ts *testscript.TestScript, command []string) (stdout, stderr string, code int) {
	if inWorker(ts, command) {
		r, err := s.workers.run(commandLine{Dir: ts.MkAbs("."), Env: scriptEnv(ts), Args: command})
		ts.Check(err)
		return r.Stdout, r.Stderr, r.Code
	}
	err := ts.Exec(command[0], command[1:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
		if status, ok := exit.Sys().(interface {
			Signaled() bool
			Signal() syscall.Signal
		}); ok && status.Signaled() {
			code = 128 + int(status.Signal())
		}
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	return ts.ReadFile("stdout"), ts.ReadFile("stderr"), code
}

// note adds a command and its output to the file session.
func (s *script) note(ts *testscript.TestScript, typed []string, stdout, stderr string, code int) {
	var b bytes.Buffer
	b.WriteString(">")
	for _, word := range typed {
		shown := s.scrub(ts, word)
		if strings.ContainsAny(shown, " \"'\n\\") || shown == "" {
			shown = format.Quote(shown)
		}
		b.WriteString(" " + shown)
	}
	b.WriteString("\n")
	noteLines(&b, "", stdout)
	noteLines(&b, "! ", stderr)
	if code != 0 {
		fmt.Fprintf(&b, "[%d]\n", code)
	}
	f, err := os.OpenFile(filepath.Join(ts.Getenv("WORK"), "session"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	ts.Check(err)
	_, err = f.Write(b.Bytes())
	ts.Check(errors.Join(err, f.Close()))
}

func noteLines(b *bytes.Buffer, mark, text string) {
	for line := range strings.Lines(text) {
		body, whole := strings.CutSuffix(line, "\n")
		b.WriteString(mark)
		for len(body) > 0 {
			r, size := utf8.DecodeRuneInString(body)
			if r == '\t' || unicode.IsPrint(r) && (r != utf8.RuneError || size > 1) {
				b.WriteString(body[:size])
			} else {
				fmt.Fprintf(b, "<%x>", body[:size])
			}
			body = body[size:]
		}
		if !whole {
			b.WriteString(" (no newline)")
		}
		b.WriteString("\n")
	}
}

// scrub replaces what differs between runs by names. It replaces only versions of today, so that versions written in a
// script stay.
func (s *script) scrub(ts *testscript.TestScript, text string) string {
	text = systext.Unix(text)
	text = strings.ReplaceAll(text, ts.Getenv("WORK")+`\`, "$WORK/") // on Windows
	text = strings.ReplaceAll(text, ts.Getenv("WORK"), "$WORK")
	for _, name := range []string{"PORT", "WSPORT", "PROXYPORT"} {
		if port := ts.Getenv(name); port != "" {
			text = regexp.MustCompile(`\b`+port+`\b`).ReplaceAllString(text, name)
		}
	}
	for _, r := range scrubRules {
		text = r.pattern.ReplaceAllStringFunc(text, func(match string) string { return r.name(s, match) })
	}
	return text
}

type scrubRule struct {
	pattern *regexp.Regexp
	name    func(s *script, match string) string
}

var scrubRules = []scrubRule{
	{regexp.MustCompile(`\b\d{13,15}:\d+:[-\w]+`), func(s *script, match string) string {
		if !recent(match[:strings.IndexByte(match, ':')]) {
			return match
		}
		name, ok := s.names[match]
		if !ok {
			name = "V" + strconv.Itoa(len(s.names)+1)
			s.names[match] = name
		}
		return name
	}},
	{regexp.MustCompile(`"hlc":"V\d+","wall_ms":\d+,"counter":\d+,"node":"[^"]*","time":"[^"]*"`), func(_ *script, match string) string {
		hlc, rest, _ := strings.Cut(match, ",")
		node := regexp.MustCompile(`[0-9a-f-]{36}`).ReplaceAllString(regexp.MustCompile(`"node":"[^"]*"`).FindString(rest), "UUID")
		return hlc + `,"wall_ms":WALL,"counter":N,` + node + `,"time":"TIME"`
	}},
	{regexp.MustCompile(`\b\d{13,15}\b`), func(_ *script, match string) string {
		if recent(match) {
			return "WALL"
		}
		return match
	}},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z`), func(_ *script, match string) string {
		if at, err := time.Parse(time.RFC3339, match); err == nil && recent(strconv.FormatInt(at.UnixMilli(), 10)) {
			return "TIME"
		}
		return match
	}},
	replace(`"(rtt|min|avg|p99|max|age)_ms":[\d.]+`, `"${1}_ms":RTT`),
	replace(`(?m)^(\d+)\t\d+(\.\d+)?$`, "$1\tRTT"),
	replace(`(?m)^(summary\t\d+\t\d+)(\t\d+(\.\d+)?){4}$`, "$1\tRTT\tRTT\tRTT\tRTT"),
	replace(`(?m)^((?:[^\t\n]*\t)?(?:held|maybe)\t[^\t\n]*\t[^\t\n]*\t)\d+(\t|$)`, "${1}AGE$2"),
	replace(`\btime=\d+(\.\d+)?ms`, "time=RTT"),
	replace(`\bp99/max [\d./]+ ms`, "p99/max RTT"),
	replace(`\((in )?[\ddhms.]+ ago\)`, "(AGE)"),
	// Table cells, and the spaces after versions, whose lengths differ.
	replace(`(  V\d+)  +`, "$1  "),
	replace(`  (in [\dhms.]+|[\dhms.]+ ago)  +`, "  AGE  "),
	replace(` {25,}\(nil\)`, strings.Repeat(" ", 10)+"(nil)"),
	replace(`(?m)  (in [\dhms.]+|[\dhms.]+ ago)$`, "  AGE"),
	replace(`\bis [\dhms.]+ ahead of the local clock`, "is AHEAD of the local clock"),
	replace(`\bsscli-[a-z2-7]{16}\b`, "CLIENT"),
	replace(`[^\s"@]+@[^\s":@]+:\d+:[a-z2-7]{20}\b`, "HOLDER"),
	replace(`\b(counts as lost|TERM) in [\d.]+m?s`, "$1 in DURATION"),
	replace(`\bagain after [\dhms.]+`, "again after DURATION"),
	replace(`\bsscli-lock-\d+\b`, "sscli-lock-N"),
	replace(`\bsscli-edit-\d+\b`, "sscli-edit-N"),
	replace(`\(in [\dhms.]+\)`, "(AGE)"),
	replace(`\b(issued|expired) \d[\ddhms.]* ago`, "$1 AGE ago"),
	replace(`\bexpires in \d[\dhms.]*([)\t])`, "expires in AGE$1"),
	replace(`(?m), expires in \d+s$`, ", expires in TIMEOUT"),
	// What only a slow machine prints.
	replace(`(?m)^sscli: waiting for kubectl .*\n`, ""),
	replace(`(?m)^sscli: warning: TIME (the broker has not answered for \S+: )?(connection lost: no sign of life from the broker until a request )?timed out; trying again, .* in DURATION\n`, ""),
	replace(`(?m)^\{"op":"warning","message":"(the broker has not answered for \S+: )?(connection lost: no sign of life from the broker until a request )?timed out; trying again, .* in DURATION","time":"TIME"\}\n`, ""),
	replace(`(?m)^sscli: TIME the broker answers again after DURATION\n`, ""),
	replace(`(?m)^\{"op":"notice","message":"the broker answers again after DURATION","time":"TIME"\}\n`, ""),
	replace(`\bat (most|least) [\dhms.]+( ms)? (ahead of|behind) the store's`, "at $1 TIME $3 the store's"),
	replace(`\bnewer than yours by [\dhms.]+`, "newer than yours by TIME"),
	replace(`(127\.0\.0\.1|localhost|\[::1\]):\d{5}\b`, "$1:PORT"),
	replace(`(?m)^ +\d+\.\d{6} (->|<-) (\w+)( #\d+)? \(\d+ bytes\)`, "  SECONDS $1 $2$3 (SIZE)"),
	replace(`(?m)^\d\d:\d\d:\d\d\.\d{3}Z  `, "CLOCK  "),
	replace(`(?m)^time\t[\d.]+s$`, "time\tTOOK"),
	replace(`"elapsed_ms":[\d.]+`, `"elapsed_ms":MS`),
	replace(`"outage_ms":[\d.]+`, `"outage_ms":MS`),
	replace(`\(\d[\d.]*(ns|µs|ms|s), (\d+ bytes (in|out))`, "(TOOK, $2"),
	replace(`receive maximum \d+`, "receive maximum N"),
	replace(`(?m)( unknown(, \d+ skipped)?); [\d.]+s, \d+/s$`, "$1; ELAPSED, RATE"),
	replace(`(?m)( bytes?(, \d+ (missing|refused))*); [\d.]+s, \d+/s$`, "$1; ELAPSED, RATE"),
	replace(`(?m)( equal(, \d+ refused)?); [\d.]+s$`, "$1; ELAPSED"),
	replace(`(?m)( unchanged(, \d+ [a-z ]+)*); [\d.]+s$`, "$1; ELAPSED"),
	replace(`\([\d.]+s, \d+/s\)`, "(ELAPSED, RATE)"),
	replace(`"rate":\d+`, `"rate":RATE`),
	replace(`correlation [0-9a-f]{32}`, "correlation ID"),
	replace(`\b10 times, \S+ to \S+`, "10 times, RTT to RTT"),
	replace(`clock is [\d.]+ ms (ahead of|behind) the store's, give or take [\d.]+ ms; up to a minute further ahead if a client with a fast clock wrote in the last minute(; the store refuses writes that are over 1m0s ahead)?`, "clock is NEAR the store's"),
	replace(`clock is [\dm.]+s (ahead of|behind) the store's, give or take [\d.]+ ms`, "clock is FAR $1 the store's"),
	replace(`(?m)  -?\d+(\.\d+)? ms$`, "  MS"),
	replace(`"took_ms":[\d.]+`, `"took_ms":MS`),
	replace(`sscli/doctor/[a-z2-7]{8}/`, "sscli/doctor/RANDOM/"),
}

func replace(pattern, with string) scrubRule {
	re := regexp.MustCompile(pattern)
	return scrubRule{re, func(_ *script, match string) string { return re.ReplaceAllString(match, with) }}
}

// recent reports whether a wall clock in milliseconds is within a few hours of now.
func recent(ms string) bool {
	n, err := strconv.ParseInt(ms, 10, 64)
	return err == nil && time.Since(time.UnixMilli(n)).Abs() < 6*time.Hour
}

// scriptSignal sends a signal to a program once a field of the emulator's State has a value.
func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: signal INT|TERM|HUP|QUIT|… field=n N program [args...]")
	}
	s := scriptOf(ts)
	sig, ok := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}[args[0]]
	field, value, _ := strings.Cut(args[1], "=")
	n, err := strconv.Atoi(value)
	want, err2 := strconv.Atoi(args[2])
	if !ok || err != nil || err2 != nil || s.server == nil {
		ts.Fatalf("signal %s: want a signal, a field of the state of an emulator, and an exit code", strings.Join(args[:3], " "))
	}
	pidFile := filepath.Join(ts.Getenv("WORK"), "pid")
	count := func(st emulator.State) int64 { return reflect.ValueOf(st).FieldByName(field).Int() }
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	if strings.HasPrefix(value, "+") {
		// Count from now: earlier commands may have sent requests, some of them twice, and the last of these are
		// answered after the commands have ended.
		ts.Check(s.server.Await(ctx, func(st emulator.State) bool { return st.Connections == 0 }))
		n += int(count(s.server.State()))
	}
	sent := make(chan error, 1)
	go func() {
		sent <- func() (err error) {
			defer func() {
				if err != nil { // otherwise the script would wait for the program forever
					killWritten(pidFile)
				}
			}()
			if err := s.server.Await(ctx, func(st emulator.State) bool {
				return count(st) >= int64(n)
			}); err != nil {
				return err
			}
			text, err := os.ReadFile(pidFile)
			if err != nil {
				return err
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				return err
			}
			p, err := os.FindProcess(pid)
			if err != nil {
				return err
			}
			return p.Signal(sig)
		}()
	}()
	defer func() {
		cancel()
		ts.Check(<-sent)
	}()
	s.run(ts, want, args[3:], append([]string{"sh", "-c", `echo $$ >"$0"; exec "$@"`, pidFile}, args[3:]...))
}

// killWritten kills the process whose ID is in a file.
func killWritten(pidFile string) {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return // the process has not started yet
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // the process may have ended
		}
	}
}

func scriptFastForward(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fastforward DURATION")
	}
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	scriptOf(ts).server.FastForward(d)
}

// scriptSilentListener accepts connections, as the kernel does, and sends nothing, or only answers the first bytes of a
// client with the given bytes.
func scriptSilentListener(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: silent-listener [HEX]")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	var running sync.WaitGroup
	ts.Defer(func() {
		ln.Close()
		running.Wait()
	})
	if len(args) == 1 {
		answer, err := hex.DecodeString(args[0])
		ts.Check(err)
		running.Go(func() { answerAll(ln, answer) })
	}
	ts.Setenv("SSCLI_URL", "mqtt://"+ln.Addr().String())
	ts.Setenv("PORT", strconv.Itoa(ln.Addr().(*net.TCPAddr).Port))
}

// answerAll answers one connection after the other, until the listener is closed.
func answerAll(ln net.Listener, answer []byte) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			_, err = conn.Write(answer)
			for err == nil { // until the client leaves
				_, err = conn.Read(make([]byte, 512))
			}
		}
		conn.Close()
	}
}

func scriptEmulator(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("unsupported: ! emulator")
	}
	var o emulator.Options
	actions := make(map[string]emulator.Action) // actions by verb
	stored := make(map[string]string)
	var refuse byte
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		if name == "refuse-connect" { // the reason code of the refusal
			code, err := reason(value)
			ts.Check(err)
			refuse = code
			continue
		}
		if name == "has" { // KEY:VALUE
			key, value, _ := strings.Cut(value, ":")
			stored[key] = value
			continue
		}
		set := emulatorOptions[name]
		if set != nil {
			ts.Check(set(ts, &o, value))
			continue
		}
		act := emulatorActions[name]
		if act == nil {
			ts.Fatalf("emulator: unknown option %q", arg)
		}
		verb, detail, _ := strings.Cut(value, ":")
		action := actions[verb]
		ts.Check(act(&action, detail))
		actions[verb] = action
	}
	if scriptOf(ts).attached {
		attach(ts, o)
		return
	}
	s := emulator.Start(scriptTester{ts}, o)
	s.RefuseConnect(func(string, string) byte { return refuse })
	s.Intercept(func(r emulator.Request) emulator.Action { return actions[r.Verb()] })
	for key, value := range stored {
		_, err := s.Set(key, value)
		ts.Check(err)
	}
	for stored := time.Now().UnixMilli(); time.Now().UnixMilli() == stored; { // a command must not begin in the same millisecond
		runtime.Gosched()
	}
	scriptOf(ts).server = s
	ts.Setenv("SSCLI_URL", s.URL())
	ts.Setenv("PORT", strconv.Itoa(s.Addr().(*net.TCPAddr).Port))
	if addr, ok := s.WebSocketAddr().(*net.TCPAddr); ok {
		ts.Setenv("WSPORT", strconv.Itoa(addr.Port))
	}
}

// emulatorOptions are written NAME=VALUE.
var emulatorOptions = map[string]func(ts *testscript.TestScript, o *emulator.Options, value string) error{
	"users": func(_ *testscript.TestScript, o *emulator.Options, value string) error {
		name, password, _ := strings.Cut(value, ":")
		o.CheckLogin = emulator.Passwords(map[string]string{name: password})
		return nil
	},
	"max-keys": func(_ *testscript.TestScript, o *emulator.Options, value string) (err error) {
		o.MaxKeys, err = strconv.Atoi(value)
		return err
	},
	"max-packet-size": func(_ *testscript.TestScript, o *emulator.Options, value string) error {
		n, err := strconv.ParseUint(value, 10, 32)
		o.Limits.MaxPacketSize = uint32(n)
		return err
	},
	"skew": func(_ *testscript.TestScript, o *emulator.Options, value string) (err error) {
		o.Skew, err = time.ParseDuration(value)
		return err
	},
	"deny": func(_ *testscript.TestScript, o *emulator.Options, value string) error {
		o.Policy = emulator.PolicyFunc(func(a emulator.Access) bool { return a.On != value })
		return nil
	},
	"deny-topic": func(_ *testscript.TestScript, o *emulator.Options, value string) error {
		o.Policy = emulator.PolicyFunc(func(a emulator.Access) bool {
			topic := a.Method == emulator.Publish || a.Method == emulator.Subscribe
			return !topic || !strings.Contains(a.On, value)
		})
		return nil
	},
	"variant": func(_ *testscript.TestScript, o *emulator.Options, value string) error {
		field := reflect.ValueOf(&o.Variants).Elem().FieldByName(value)
		if !field.IsValid() {
			return fmt.Errorf("no variant %q", value)
		}
		field.SetBool(true)
		return nil
	},
	// tls serves TLS with a certificate for 127.0.0.1 and localhost, or for the given name. The CA is in ca.pem, and an
	// unrelated CA in other-ca.pem.
	"tls": func(ts *testscript.TestScript, o *emulator.Options, value string) error {
		names := []string{"localhost", "127.0.0.1"}
		if value != "" {
			names = []string{value}
		}
		ca, err := testcert.Issue(nil, testcert.CA("Test CA"))
		if err != nil {
			return err
		}
		other, err := testcert.Issue(nil, testcert.CA("Test CA"))
		if err != nil {
			return err
		}
		cert, err := testcert.Issue(ca, testcert.Leaf(names...))
		if err != nil {
			return err
		}
		o.TLS = cert.Server()
		return errors.Join(os.WriteFile(filepath.Join(ts.Getenv("WORK"), "ca.pem"), ca.PEM(), 0o666),
			os.WriteFile(filepath.Join(ts.Getenv("WORK"), "other-ca.pem"), other.PEM(), 0o666),
			writeCertificate(ts.Getenv("WORK"), "server", cert))
	},
	// tls-life serves TLS with a certificate that is valid FROM:TO, relative to now.
	"tls-life": func(ts *testscript.TestScript, o *emulator.Options, value string) error {
		from, to, _ := strings.Cut(value, ":")
		begin, err := time.ParseDuration(from)
		end, err2 := time.ParseDuration(to)
		ca, err3 := testcert.Issue(nil, testcert.CA("Test CA"))
		if err := errors.Join(err, err2, err3); err != nil {
			return err
		}
		leaf := testcert.Leaf("localhost", "127.0.0.1")
		leaf.NotBefore, leaf.NotAfter = time.Now().Add(begin), time.Now().Add(end)
		cert, err := testcert.Issue(ca, leaf)
		if err != nil {
			return err
		}
		o.TLS = cert.Server()
		return errors.Join(os.WriteFile(filepath.Join(ts.Getenv("WORK"), "ca.pem"), ca.PEM(), 0o666))
	},
	// tls-of-client serves TLS with a certificate that is only valid for clients.
	"tls-of-client": func(ts *testscript.TestScript, o *emulator.Options, _ string) error {
		ca, err := testcert.Issue(nil, testcert.CA("Test CA"))
		if err != nil {
			return err
		}
		leaf := testcert.Leaf("localhost", "127.0.0.1")
		leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		cert, err := testcert.Issue(ca, leaf)
		if err != nil {
			return err
		}
		o.TLS = cert.Server()
		return errors.Join(os.WriteFile(filepath.Join(ts.Getenv("WORK"), "ca.pem"), ca.PEM(), 0o666))
	},
	"tls12": func(_ *testscript.TestScript, o *emulator.Options, _ string) error {
		o.TLS.MaxVersion = tls.VersionTLS12
		return nil
	},
	// client-ca requires a client certificate of the CA in client-ca.pem. client.pem is one, and stranger.pem is not.
	// writeCertificate says where their keys are.
	"client-ca": func(ts *testscript.TestScript, o *emulator.Options, _ string) error {
		ca, err := testcert.Issue(nil, testcert.CA("Client CA"))
		if err != nil {
			return err
		}
		o.TLS.ClientCAs, o.TLS.ClientAuth = ca.Pool(), tls.RequireAndVerifyClientCert
		// The CA has the same name, so that the client sends the certificate.
		stranger, err := testcert.Issue(nil, testcert.CA("Client CA"))
		if err != nil {
			return err
		}
		for name, by := range map[string]*testcert.Cert{"client": ca, "stranger": stranger} {
			cert, err := testcert.Issue(by, testcert.Leaf(name))
			if err != nil {
				return err
			}
			if err := writeCertificate(ts.Getenv("WORK"), name, cert); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(ts.Getenv("WORK"), "client-ca.pem"), ca.PEM(), 0o666)
	},
	// ws also listens for WebSocket connections, on the port WSPORT.
	"ws": func(_ *testscript.TestScript, o *emulator.Options, _ string) error {
		o.WebSocket = "127.0.0.1:0"
		return nil
	},
	// token accepts only this service-account token.
	"token": func(_ *testscript.TestScript, o *emulator.Options, value string) error {
		o.CheckToken = func(token []byte, _ time.Time) (emulator.Login, error) {
			if string(token) != value {
				return emulator.Login{}, errors.New("not a token")
			}
			return emulator.Login{}, nil
		}
		return nil
	},
}

// emulatorActions are written NAME=VERB or NAME=VERB:DETAIL. Each applies to requests with that verb.
var emulatorActions = map[string]func(a *emulator.Action, detail string) error{
	"drop":       func(a *emulator.Action, _ string) error { a.Drop = true; return nil },
	"drop-reply": func(a *emulator.Action, _ string) error { a.DropReply = true; return nil },
	"cut":        func(a *emulator.Action, _ string) error { a.Cut = true; return nil },
	"cut-after":  func(a *emulator.Action, _ string) error { a.CutAfter = true; return nil },
	"duplicate":  func(a *emulator.Action, _ string) error { a.Duplicate = true; return nil },
	"no-puback":  func(a *emulator.Action, _ string) error { a.NoPuback = true; return nil },
	"refuse": func(a *emulator.Action, detail string) (err error) {
		a.Refuse, err = reason(detail)
		return err
	},
	"disconnect": func(a *emulator.Action, detail string) (err error) {
		a.Disconnect, err = reason(detail)
		return err
	},
	// reply replaces the reply. The line end is added.
	"reply": func(a *emulator.Action, detail string) error {
		a.Rewrite = func(answer *emulator.Answer) { answer.Payload = []byte(detail + "\r\n") }
		return nil
	},
	// property sets a user property of the reply: NAME:VALUE.
	"property": func(a *emulator.Action, detail string) error {
		name, value, ok := strings.Cut(detail, ":")
		if !ok {
			return fmt.Errorf("property %q: want NAME:VALUE", detail)
		}
		before := a.Rewrite
		a.Rewrite = func(answer *emulator.Answer) {
			if before != nil {
				before(answer)
			}
			answer.Set(name, value)
		}
		return nil
	},
	"no-version": func(a *emulator.Action, _ string) error {
		a.Rewrite = func(answer *emulator.Answer) { answer.Delete(wire.PropTimestamp) }
		return nil
	},
}

func reason(text string) (byte, error) {
	n, err := strconv.ParseUint(text, 0, 8)
	return byte(n), err
}

// scriptTester lets emulator.Start report to a script.
type scriptTester struct{ ts *testscript.TestScript }

func (t scriptTester) Helper()                           {}
func (t scriptTester) Fatalf(format string, args ...any) { t.ts.Fatalf(format, args...) }
func (t scriptTester) Logf(format string, args ...any)   { t.ts.Logf(format, args...) }
func (t scriptTester) Cleanup(f func())                  { t.ts.Defer(f) }
