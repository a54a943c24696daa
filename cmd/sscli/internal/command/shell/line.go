package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/directive"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/help"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

// entry runs the lines of an entry, up to the first error other than [fault.ErrNo].
func (s *shell) entry(ctx context.Context, text string) error {
	lines := repl.NewReader(strings.NewReader(text))
	lines.Joins = true
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		err = s.command(ctx, func(ctx context.Context) error {
			if bad, ok := errors.AsType[*repl.LineError](err); ok {
				u := lineinput.SyntaxError(bad)
				if u.Hint == nil {
					u.Hint = suggest.Try("`sscli help quoting`")
				}
				return u
			} else if err != nil {
				return err
			}
			return s.words(ctx, line.Words)
		})
		if err == nil || errors.Is(err, fault.ErrNo) {
			continue
		}
		left := 0
		for {
			if _, err := lines.Next(); errors.Is(err, io.EOF) {
				break
			}
			left++
		}
		switch {
		case fault.IsA[*leaveError](err):
		case left == 1:
			s.app.Warn("1 later line was not run")
		case left > 1:
			s.app.Warn(fmt.Sprintf("%d later lines were not run", left))
		}
		return err
	}
}

// Slow is how long a command must take before the shell prints its duration.
const Slow = 500 * time.Millisecond

// command calls do with a context that Ctrl-C ends. Then it prints the error and the exit code and, if
// the command was slow, how long it took.
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
	if fault.IsA[*leaveError](err) {
		return err
	}
	code := 0
	if !fault.IsA[*signals.Interrupted](err) || fault.IsA[*fault.UnknownError](err) {
		code = s.line.Report(err)
	}
	if s.line.Output != "human" {
		return err
	}
	var facts []string
	if code != 0 && !errors.Is(err, fault.ErrNo) {
		facts = append(facts, "exit code "+strconv.Itoa(code))
	}
	if took >= Slow && !interrupted && s.timed {
		facts = append(facts, strconv.FormatFloat(took.Seconds(), 'f', 2, 64)+"s")
	}
	if len(facts) > 0 {
		s.line.Say(format.Note{Level: format.Aside, Message: strings.Join(facts, ", ")})
	}
	return err
}

// words runs the words of a line, which may be a command, a directive, or a command of the shell
// itself.
func (s *shell) words(ctx context.Context, words []repl.Word) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if strings.EqualFold(words[0].Text, "sscli") && len(words) > 1 {
		words = words[1:] // the user may have copied an example from the help
	}
	name := strings.ToLower(words[0].Text)
	switch {
	case isLeave(name):
		return leave(words)
	case name == "help" && len(words) == 1:
		return s.overview()
	case strings.HasPrefix(name, "."):
		return s.dot(words)
	case directive.Is(name):
		return directive.Run(ctx, s.app, words, s.words)
	}
	return s.execute(ctx, words)
}

// A leaveError ends the shell with an exit code. The shell does not print it.
type leaveError struct{ code int }

func (e *leaveError) Error() string { return "the shell ends" }

// isLeave reports whether a word, in any case, is exit or quit.
func isLeave(word string) bool {
	return strings.EqualFold(word, "exit") || strings.EqualFold(word, "quit")
}

// leave returns the leaveError for the words exit [CODE] or quit [CODE], or a usage error.
func leave(words []repl.Word) error {
	if len(words) == 1 {
		return &leaveError{}
	}
	code, err := strconv.Atoi(words[1].Text)
	if err != nil || code < 0 || code > 255 || len(words) > 2 {
		return fault.Usagef("expected %s [CODE], with an exit code of 0 to 255", strings.ToLower(words[0].Text))
	}
	return &leaveError{code}
}

// execute runs a command with a new tree of commands.
func (s *shell) execute(ctx context.Context, words []repl.Word) error {
	line := s.newLine()
	s.line = line
	root := newLineRoot(line)
	args := usage.Protect(words)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if line.Out != nil && line.Out.Unfinished() && term.IsTerminal(int(s.app.Stdout.Fd())) {
		fmt.Fprintln(s.app.Stdout) // the prompt would overwrite the value
	}
	if cmd.HasParent() && cmd.Parent().Name() == "lock" && cmd.Flags().NArg() > 0 && !fault.IsA[*fault.UsageError](err) {
		s.conn.locks.add(usage.Unprotect(cmd.Flags().Args())[0])
	}
	path := strings.Fields(cmd.CommandPath())
	// These commands run for as long as the user wants, so their duration is of no interest.
	s.timed = len(path) < 2 || !slices.Contains([]string{"watch", "lock", "ping", "bench"}, path[1])
	u, ok := errors.AsType[*fault.UsageError](err)
	if _, advised := fault.Advice(err); ok && !advised {
		u.Hint = suggest.Say("help")
		if name := strings.Join(path[1:], " "); name != "" {
			u.Hint = suggest.Say(name + help.Operands(cmd) + "  (help " + name + ")")
		}
	}
	if err != nil && line.Faults == nil {
		line.GuessOutput(args)
	}
	return err
}

// newLine returns an application for a line, with the shell's output streams and connection.
func (s *shell) newLine() *app.App {
	return &app.App{Commands: s.app.Commands, Topics: s.app.Topics, Stdin: noInput{}, Stdout: s.app.Stdout, Stderr: s.app.Stderr, Env: s.app.Env, Signals: s.app.Signals, Shell: s.conn, Hinted: s.app.Hinted}
}

// noInput is the standard input of a command in the shell, because the shell itself reads the real
// standard input.
type noInput struct{}

// Read returns a usage error.
func (noInput) Read([]byte) (int, error) {
	return 0, fault.Usagef(`the shell itself reads standard input: use -f FILE, or "-" in quotes for the value -`)
}

func newLineRoot(line *app.App) *cobra.Command {
	root := cmdline.NewRoot(line)
	for _, name := range config.ConnectionFlags() {
		root.PersistentFlags().Lookup(name).Hidden = true
	}
	for _, cmd := range root.Commands() {
		if name := cmd.Name(); name == "shell" || name == "serve" || name == "forward" {
			cmd.Hidden, cmd.Args = true, cobra.ArbitraryArgs
			cmd.RunE = func(*cobra.Command, []string) error {
				return &fault.UsageError{Err: fmt.Errorf("%s cannot run in a shell", name), Hint: suggest.Try("`sscli " + name + "` in another terminal")}
			}
		}
	}
	return root
}
