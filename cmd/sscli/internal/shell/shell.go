package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/cli"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/cmd/sscli/internal/lineword"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

func New(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "shell",
		Short:   "Read commands from the terminal (also: sscli alone)",
		GroupID: cli.GroupMore,
		Long: `Read commands from the terminal and run them over one connection, which is made again
by itself when it was lost. sscli without a command on a terminal does the same.

` + shellHelp + `
The flags of sscli shell hold for every line; a line may have its own --output, --color,
--timeout, --trace, --trace-file, --quiet and --verbose.`,
		Example: "  sscli shell\n  sscli -u mqtt://127.0.0.1:1883\n  sscli --embedded shell",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !a.OnTerminal() {
				return &explain.UsageError{Err: errors.New("shell: standard input and output are no terminal"),
					Hint: "sscli - to read commands from standard input"}
			}
			return runShell(a, cmd.Context())
		},
	}
}

// An editor reads entries from the user.
type editor interface {
	ReadEntry(ctx context.Context, prompt string) (string, error)
	Interrupt() bool
	SetPrompt(prompt string)
	Above(print func())
	Close() error
}

// A shell reads entries and runs their lines.
type shell struct {
	app     *cli.App // with the settings that lines begin with
	held    *connection
	editor  editor
	history *repl.History

	line  *cli.App // that of the last command line
	told  error    // how the connection was lost, when the user knows
	timed bool     // how long the last command took is worth a line

	mu      sync.Mutex
	cancel  context.CancelCauseFunc // of the command that runs; nil at the prompt
	pressed int                     // how often Ctrl-C was, for that command
	early   bool                    // Ctrl-C was between the entry and its command
}

// A leaveError asks to leave the shell.
type leaveError struct{ code int }

func (e *leaveError) Error() string { return "the shell ends" }

// runShell talks to the user until the user leaves.
func runShell(a *cli.App, ctx context.Context) (err error) {
	h := &connection{settings: a.Settings}
	// The trace on the terminal is for commands; a file gets everything.
	a.Settings.Trace = false
	o, undo, err := a.Broker()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	h.tap.always = o.Trace
	o.Trace = h.tap.print
	h.options = o
	a.Shell = h
	s := &shell{app: a, held: h}
	defer func() {
		if h.session != nil {
			err = errors.Join(err, h.session.Close())
		}
	}()
	if s.history, err = repl.OpenHistory(historyFile(a.Env)); err != nil {
		a.Warn(err.Error()+"; what is entered is not kept", "")
	}
	if s.editor, err = s.newEditor(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.editor.Close()) }()
	a.Signals.Interrupts(s.interrupted)
	defer a.Signals.Interrupts(nil)
	return s.run(ctx)
}

func (s *shell) newEditor() (editor, error) {
	in := s.app.Stdin.(*os.File)
	if kind, _ := s.app.Env("TERM"); kind == "dumb" || kind == "" && runtime.GOOS != "windows" {
		return repl.NewLineReader(in, s.app.Stdout), nil
	}
	return repl.NewTerminal(repl.TerminalOptions{In: in, Out: s.app.Stdout, History: s.history, Complete: s.complete})
}

// historyFile follows the XDG base directories; empty is none.
func historyFile(env func(string) (string, bool)) string {
	if name, ok := env("SSCLI_HISTFILE"); ok {
		return name
	}
	state, _ := env("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		if runtime.GOOS == "windows" {
			state, _ = env("LOCALAPPDATA")
		} else if home, _ := env("HOME"); home != "" {
			state = filepath.Join(home, ".local", "state")
		}
	}
	if state == "" {
		return ""
	}
	return filepath.Join(state, "sscli", "history")
}

// interrupted is Ctrl-C while no line is edited.
func (s *shell) interrupted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel == nil {
		s.early = !s.editor.Interrupt()
		return
	}
	// Behind the ^C that the terminal shows.
	fmt.Fprintln(s.app.Stderr)
	stop := &signals.Interrupted{Signal: syscall.SIGINT}
	s.cancel(stop)
	if s.pressed++; s.pressed == 3 {
		stop.Reraise() // whatever it is that does not end
	}
}

func (s *shell) run(ctx context.Context) error {
	s.greet(ctx)
	for {
		s.tellOfLoss()
		told := s.watchConnection()
		s.mu.Lock()
		s.early = false
		s.mu.Unlock()
		text, err := s.editor.ReadEntry(ctx, s.prompt())
		told()
		switch {
		case errors.Is(err, repl.ErrInterrupted):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if keep(text) {
			if err := s.history.Add(text); err != nil {
				s.app.Note(err.Error())
			}
		}
		err = s.entry(ctx, text)
		if leave, ok := errors.AsType[*leaveError](err); ok {
			if leave.code == 0 {
				return nil
			}
			return &explain.ExitError{Code: leave.code}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// greet connects, and says to what.
func (s *shell) greet(ctx context.Context) {
	h := s.held
	limited, cancel := context.WithTimeout(ctx, h.options.Timeout)
	defer cancel()
	var err error
	s.command(limited, func(ctx context.Context) error {
		print, end, traceErr := s.app.Tracer(h.settings.Trace, "")
		if err = traceErr; err != nil {
			return err
		}
		h.tap.set(print)
		err = h.connect(ctx)
		h.tap.set(nil)
		return errors.Join(err, end())
	})
	if s.app.Output != "human" || s.app.Settings.Quiet {
		return
	}
	text := "not connected to " + s.name() + "; the next command tries again"
	switch {
	case err == nil && s.app.Settings.Embedded:
		text = "connected to an emulator in this process; what it holds is gone when it ends"
	case err == nil:
		text = "connected to " + s.app.Settings.URL()
	}
	fmt.Fprintf(s.app.Stderr, "sscli: %s\nhelp tells what there is to type, Ctrl-D leaves\n", format.Escape(text))
}

// name is what the prompt calls the connection.
func (s *shell) name() string {
	settings := s.held.settings
	if settings.Embedded {
		return "embedded"
	}
	if settings.Context != "" {
		return settings.Context
	}
	return settings.Address
}

func (s *shell) prompt() string {
	if s.held.up() {
		return s.name() + "> "
	}
	return s.name() + " (not connected)> "
}

// tellOfLoss says once how the connection was lost.
func (s *shell) tellOfLoss() {
	if s.held.session == nil {
		return
	}
	err := s.held.session.Err()
	if err == nil {
		if s.told != nil {
			s.told = nil
			s.app.Warn("connected again", "")
		}
		return
	}
	if s.told == nil {
		hint := ""
		if client.IsPermanent(err) {
			hint = explain.Of(err).Hint
		}
		s.app.Warn(explain.Message(err)+"; the next command connects again", hint)
	}
	s.told = err
}

// watchConnection tells of a loss while a line is edited. What it returns ends that.
func (s *shell) watchConnection() func() {
	if !s.held.up() {
		return func() {}
	}
	down := s.held.session.Down()
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-down:
			s.editor.SetPrompt(s.prompt())
			s.editor.Above(s.tellOfLoss)
		case <-over:
		}
	})
	return func() {
		close(over)
		wg.Wait()
	}
}

// maxKept is how many bytes a word may have to be kept in the history.
const maxKept = 256

// keep tells whether an entry belongs into the history: not if it begins with a
// space, holds a long value, or something that looks like a password.
func keep(text string) bool {
	if strings.HasPrefix(text, " ") {
		return false
	}
	for r := repl.NewReader(strings.NewReader(text)); ; {
		line, err := r.Next()
		if _, bad := errors.AsType[*repl.LineError](err); err != nil && !bad {
			return true
		}
		words := line.Words
		if len(words) == 0 { // it is not understood, and so taken roughly
			for _, field := range strings.Fields(line.Text) {
				words = append(words, repl.Word{Text: field})
			}
		}
		for _, w := range words {
			name, _, _ := strings.Cut(w.Text, "=")
			if len(w.Text) > maxKept || hasPassword(w.Text) ||
				strings.HasPrefix(name, "--pass") && name != "--password-file" {
				return false
			}
		}
	}
}

// hasPassword tells whether a word holds a URL with a password.
func hasPassword(word string) bool {
	_, rest, ok := strings.Cut(word, "://")
	if !ok {
		return false
	}
	authority, _, _ := strings.Cut(rest, "/")
	user, _, ok := cutLast(authority, "@")
	return ok && strings.Contains(user, ":")
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// entry runs the lines of an entry, to the first error.
func (s *shell) entry(ctx context.Context, text string) error {
	lines := repl.NewReader(strings.NewReader(text))
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		err = s.command(ctx, func(ctx context.Context) error {
			if bad, ok := errors.AsType[*repl.LineError](err); ok {
				return &explain.UsageError{Err: bad.Err, Hint: "help quoting"}
			} else if err != nil {
				return err
			}
			args := make([]string, len(line.Words))
			for i, w := range line.Words {
				args[i] = cli.Protect(w.Text, w.Quoted)
			}
			return s.words(ctx, args)
		})
		if err == nil || explain.IsNo(err) {
			continue
		}
		left := 0
		for {
			if _, err := lines.Next(); errors.Is(err, io.EOF) {
				break
			}
			left++
		}
		if _, leaving := errors.AsType[*leaveError](err); left > 0 && !leaving {
			s.app.Warn(fmt.Sprintf("%d lines behind that were not run", left), "")
		}
		return err
	}
}

// slow is from when on the time that a command took is worth a line.
const Slow = 500 * time.Millisecond

// command runs something that Ctrl-C ends, and says how it ended.
func (s *shell) command(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	s.cancel, s.pressed = cancel, 0
	if s.early {
		s.early, s.pressed = false, 1
		cancel(&signals.Interrupted{Signal: syscall.SIGINT})
	}
	s.mu.Unlock()
	s.line, s.timed = s.app, false
	start := time.Now()
	err := do(ctx)
	took := time.Since(start)
	s.mu.Lock()
	s.cancel = nil
	interrupted := s.pressed > 0
	s.mu.Unlock()
	if explain.IsA[*leaveError](err) {
		return err
	}
	code := 0
	if !explain.IsA[*signals.Interrupted](err) || explain.IsA[*explain.UnknownError](err) {
		code = s.line.Report(err)
	}
	if s.line.Output != "human" {
		return err
	}
	var facts []string
	if code > explain.CodeNo {
		facts = append(facts, "exit code "+strconv.Itoa(code))
	}
	if took >= Slow && !interrupted && s.timed {
		facts = append(facts, strconv.FormatFloat(took.Seconds(), 'f', 2, 64)+"s")
	}
	if len(facts) > 0 {
		s.line.Say(format.Aside{Text: strings.Join(facts, ", ")})
	}
	return err
}

// words runs the words of a line.
func (s *shell) words(ctx context.Context, args []string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if strings.EqualFold(args[0], "sscli") && len(args) > 1 {
		args = args[1:] // as the examples have it
	}
	name := strings.ToLower(args[0])
	switch {
	case name == "exit", name == "quit":
		return leave(args)
	case name == "help" && len(args) == 1:
		return s.overview()
	case strings.HasPrefix(name, "."):
		return s.dot(args)
	}
	if lineword.Is(args[0]) {
		return lineword.Run(ctx, s.app, args, s.words)
	}
	return s.execute(ctx, args)
}

func leave(args []string) error {
	if len(args) == 1 {
		return &leaveError{}
	}
	code, err := strconv.Atoi(args[1])
	if err != nil || code < 0 || code > 255 || len(args) > 2 {
		return explain.Usagef("want %s [CODE], with an exit code of 0 to 255", strings.ToLower(args[0]))
	}
	return &leaveError{code}
}

// execute runs a command line, with a command table of its own.
func (s *shell) execute(ctx context.Context, args []string) error {
	line := s.newLine()
	s.line = line
	root := newLineRoot(line)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	s.timed = !takesItsTime(cmd)
	if u, ok := errors.AsType[*explain.UsageError](err); ok && u.Hint == "" {
		u.Hint = strings.TrimSuffix(strings.TrimPrefix(cmd.UseLine(), "sscli "), " [flags]")
		if cmd.HasParent() {
			u.Hint += "  (help " + strings.TrimPrefix(cmd.CommandPath(), "sscli ") + ")"
		}
	}
	if err != nil && line.Faults == nil {
		cli.GuessForm(line, args)
	}
	return err
}

// takesItsTime tells whether how long a command takes is the user's own choice.
func takesItsTime(cmd *cobra.Command) bool {
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		switch cmd.Name() {
		case "watch", "lock", "ping", "bench":
			return true
		}
	}
	return false
}

// newLine is what a command line of the shell runs with.
func (s *shell) newLine() *cli.App {
	return &cli.App{Commands: s.app.Commands, Topics: s.app.Topics, Stdin: noInput{}, Stdout: s.app.Stdout, Stderr: s.app.Stderr, Env: s.app.Env, Signals: s.app.Signals, Shell: s.held}
}

// noInput is the standard input of a line: the shell has the real one.
type noInput struct{}

func (noInput) Read([]byte) (int, error) {
	return 0, explain.Usagef(`standard input is the shell's own; want -f FILE, or "-" in quotes for the value`)
}

// newLineRoot is the command table for a line.
func newLineRoot(line *cli.App) *cobra.Command {
	root := cli.NewRoot(line)
	for _, name := range config.ConnectionFlags() {
		root.PersistentFlags().Lookup(name).Hidden = true
	}
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "shell", "serve":
			cmd.Hidden = true
			cmd.Args = cobra.ArbitraryArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				return &explain.UsageError{Err: fmt.Errorf("%s: not within a shell", cmd.Name()), Hint: "sscli " + cmd.Name() + " in another terminal"}
			}
		}
	}
	return root
}

// dots are the commands of the shell itself, with what each is for.
func dots() [][2]string {
	return [][2]string{
		{".exit", "leave the shell"},
		{".help", "tell what there is to type"},
		{".output [FORM]", "print or change the form of results"},
		{".quit", "leave the shell"},
		{".timeout [DURATION]", "print or change the time that a request has"},
		{".trace [on|off]", "print or change whether every packet is printed"},
	}
}

// dot runs a command of the shell itself.
func (s *shell) dot(args []string) error {
	name, rest := strings.ToLower(args[0]), args[1:]
	settings := &s.held.settings
	if len(rest) > 1 {
		return explain.Usagef("%d operands: want %s", len(rest), dotUsage(name))
	}
	value := ""
	if len(rest) == 1 {
		value = cli.Unprotect(rest[0])
	}
	switch name {
	case ".help":
		return s.overview()
	case ".exit", ".quit":
		return leave(args)
	case ".output":
		if value == "" {
			return s.print(s.app.Output)
		}
		if err := s.app.SetOutput(value); err != nil {
			return &explain.UsageError{Err: err, Hint: "help output"}
		}
		settings.Output = value
		return nil
	case ".timeout":
		if value == "" {
			return s.print(cmp.Or(settings.Timeout, s.held.options.Timeout).String())
		}
		d, err := config.ParseDuration(value)
		if err != nil || d <= 0 {
			return explain.Usagef(".timeout %.32q: want a duration such as 500ms or 2s", value)
		}
		settings.Timeout = d
		return nil
	case ".trace":
		switch value {
		case "on", "off":
			settings.Trace = value == "on"
			return nil
		case "":
			return s.print(map[bool]string{true: "on", false: "off"}[settings.Trace])
		}
		return explain.Usagef(".trace %.32q: want on or off", value)
	}
	var names []string
	for _, d := range dots() {
		word, _, _ := strings.Cut(d[0], " ")
		names = append(names, word)
	}
	hint := ".help"
	if near := suggest.Near(name, names); len(near) > 0 {
		hint = dotUsage(near[0])
	}
	return &explain.UsageError{Err: fmt.Errorf("unknown dot-command %.64q", cli.Unprotect(args[0])), Hint: hint}
}

func dotUsage(name string) string {
	for _, d := range dots() {
		if strings.HasPrefix(d[0]+" ", name+" ") {
			return d[0]
		}
	}
	return name
}

func (s *shell) print(text string) error {
	if _, err := fmt.Fprintln(s.app.Stdout, text); err != nil {
		return &explain.OutputError{Err: err}
	}
	return nil
}

const shellHelp = `An open quote goes on in the next line. Tab completes commands, flags and keys; Ctrl-R
searches what was entered before. Ctrl-C ends a command or drops the line, Ctrl-D leaves.
What begins with a space, or holds a value over 256 bytes, is not kept in the history.
`

// overview is help without a topic.
func (s *shell) overview() error {
	var b strings.Builder
	root := newLineRoot(s.newLine())
	for _, group := range root.Groups() {
		b.WriteString(group.Title + "\n")
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID && !cmd.Hidden {
				fmt.Fprintf(&b, "  %-28s%s\n", cmd.Name(), cmd.Short)
			}
		}
	}
	b.WriteString("Lines:\n")
	for _, w := range lineword.Words() {
		fmt.Fprintf(&b, "  %-28s%s\n", w[0], w[1])
	}
	b.WriteString("Shell:\n")
	for _, d := range dots() {
		fmt.Fprintf(&b, "  %-28s%s\n", d[0], d[1])
	}
	fmt.Fprintf(&b, "  %-28s%s\n", "exit [CODE], quit", "leave the shell, with an exit code")
	b.WriteString("\n" + shellHelp + "help COMMAND tells more; so do help output, quoting, exit-codes and environment.")
	return s.print(b.String())
}
