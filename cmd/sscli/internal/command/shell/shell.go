// Package shell is the interactive shell: `sscli shell`, or sscli without arguments on a terminal.
//
// [New] makes the command. Package repl edits and splits the lines, and this package runs them:
//
//   - shell.go has the dialogue with the user: greeting, prompt, and lost connections.
//   - line.go runs an entry. Each line gets a new tree of commands (newLineRoot) and its own
//     application (newLine), with the connection and the settings of the shell.
//   - connection.go has the connection that all lines share. If the connection was lost, the next
//     command that needs it connects again.
//   - complete.go completes words on Tab.
//   - dot.go has the commands of the shell itself (.output, .trace) and the overview, and
//     history.go decides which entries the history keeps.
//
// A command has the same results and exit codes as on the command line, with four differences: a
// command cannot read standard input, because the shell reads the terminal; a line cannot change the
// connection; serve, forward and shell cannot run; and on a terminal, a raw value without a line end gets one. Ctrl-C
// ends the running command. A third Ctrl-C during the same command ends the shell.
package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

// New returns the command `sscli shell`.
func New(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "shell",
		Short:   "Read commands from the terminal",
		GroupID: app.GroupFirst,
		Long: `Read commands from the terminal and run them over one connection.

sscli without a command does the same on a terminal. After a lost connection, the shell
connects again by itself.

` + shellHelp + `
The flags of sscli shell apply to every line. A line may have its own --output, --color,
--timeout, --trace, --trace-file, --trace-format, --quiet and --verbose.`,
		Example: "  sscli shell\n  sscli -u mqtt://127.0.0.1:1883\n  sscli --embedded shell",
		Args:    usage.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !a.OnTerminal() {
				return &fault.UsageError{Err: errors.New("shell: standard input and output must be a terminal"),
					Hint: suggest.Try("`sscli -` to read commands from standard input")}
			}
			return runShell(cmd.Context(), a)
		},
	}
}

// An editor reads entries from the user. It is a [repl.Terminal], or a [repl.LineReader] if the
// terminal can only print.
type editor interface {
	ReadEntry(ctx context.Context, prompt string) (string, error)
	Interrupt() bool
	SetPrompt(prompt string)
	Above(write func())
	Close() error
}

// A shell reads entries from the user and runs their lines.
type shell struct {
	app     *app.App // for the shell itself; each line has its own application
	conn    *connection
	editor  editor
	history *repl.History

	line     *app.App // the application of the last command
	reported error    // the last connection loss that was reported; nil = connected
	timed    bool     // print how long the last command took, if it was slow

	mu      sync.Mutex
	cancel  context.CancelCauseFunc // cancels the running command; nil at the prompt
	pressed int                     // how often Ctrl-C was pressed during the running command
	early   bool                    // Ctrl-C was pressed between the end of an entry and the start of its command
}

func runShell(ctx context.Context, a *app.App) error {
	c := &connection{settings: a.Settings, limit: complete.Limit(a), keys: make(keyMemory), locks: make(keyMemory)}
	a.Settings.Trace = false // do not print packets between commands on the terminal
	return a.WithBroker(func(o client.Options) error {
		c.options = o
		return talk(ctx, a, c)
	})
}

// talk runs the dialogue with the user until the user leaves.
func talk(ctx context.Context, a *app.App, c *connection) (err error) {
	c.tap.always = c.options.Trace
	c.options.Trace = c.tap.print
	a.Shell = c
	s := &shell{app: a, conn: c}
	defer func() {
		if c.session != nil {
			err = errors.Join(err, c.session.Close())
		}
	}()
	if s.history, err = repl.OpenHistory(historyFile(a.Env)); err != nil {
		a.Warn(err.Error() + "; the history will not be kept")
	}
	if s.editor, err = s.newEditor(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.editor.Close()) }()
	a.Signals.Arm()
	a.Signals.Interrupts(s.interrupted)
	defer a.Signals.Interrupts(nil)
	return s.run(ctx)
}

func (s *shell) newEditor() (editor, error) {
	in := s.app.Stdin.(*os.File)
	if kind, _ := s.app.Env("TERM"); kind == "dumb" || kind == "" && runtime.GOOS != "windows" {
		return repl.NewLineReader(in, s.app.Stdout), nil
	}
	return repl.NewTerminal(repl.TerminalOptions{In: in, Out: s.app.Stdout.File, History: s.history, Complete: s.complete})
}

// interrupted handles a Ctrl-C that arrives as a signal and not as a key.
func (s *shell) interrupted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel == nil {
		s.early = !s.editor.Interrupt()
		return
	}
	fmt.Fprintln(s.app.Stderr) // end the line on which the terminal shows ^C
	stop := &signals.Interrupted{Signal: syscall.SIGINT}
	s.cancel(stop)
	if s.pressed++; s.pressed == 3 {
		stop.Reraise() // the command ignores the end of its context
	}
}

// run reads and runs entries until the user leaves.
func (s *shell) run(ctx context.Context) error {
	s.greet(ctx)
	for {
		s.reportLoss()
		stopWatching := s.watchConnection()
		s.mu.Lock()
		s.early = false
		s.mu.Unlock()
		text, err := s.editor.ReadEntry(ctx, s.prompt())
		stopWatching()
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
				s.app.Detail(err.Error())
			}
		}
		err = s.entry(ctx, text)
		if leave, ok := errors.AsType[*leaveError](err); ok {
			if leave.code == 0 {
				return nil
			}
			return &fault.ExitError{Code: leave.code}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// greet connects, and prints the broker that the shell is connected to.
func (s *shell) greet(ctx context.Context) {
	c := s.conn
	limited, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	var err error
	s.command(limited, func(ctx context.Context) error {
		printPacket, end, traceErr := s.app.Tracer(c.settings.Trace, "")
		if err = traceErr; err != nil {
			return err
		}
		c.tap.line.Store(&printPacket)
		_, err = c.Session(ctx)
		c.tap.line.Store(nil)
		return errors.Join(err, end())
	})
	if s.app.Output != "human" || s.app.Settings.Quiet {
		return
	}
	text := "not connected to " + s.name() + "; the next command tries again"
	switch {
	case err == nil && s.app.Settings.Embedded:
		text = "connected to an emulator in this process; its keys are gone when the process ends"
	case err == nil:
		text = "connected to " + s.app.Settings.URL()
	}
	fmt.Fprintf(s.app.Stderr, "sscli: %s\nType help for a list of commands, Ctrl-D to leave.\n", format.Escape(text))
}

// name returns the context or the address of the broker, for the prompt.
func (s *shell) name() string {
	if s.conn.settings.Embedded {
		return "embedded"
	}
	return cmp.Or(s.conn.settings.Context, s.conn.settings.Address)
}

func (s *shell) prompt() string {
	if s.conn.up() {
		return s.name() + "> "
	}
	return s.name() + " (not connected)> "
}

// reportLoss prints once that the connection was lost, and once that it is back.
func (s *shell) reportLoss() {
	if s.conn.session == nil {
		return
	}
	err := s.conn.session.Err()
	if err == nil {
		if s.reported != nil {
			s.reported = nil
			s.app.Warn("reconnected")
		}
		return
	}
	if s.reported == nil {
		f, hint := fault.Of(err)
		if !client.IsPermanent(err) {
			hint = nil
		}
		s.app.Advise(f.Text()+"; the next command reconnects", hint)
	}
	s.reported = err
}

// watchConnection reports a loss of the connection while the user edits an entry. The caller must call
// stop afterwards.
func (s *shell) watchConnection() (stop func()) {
	if !s.conn.up() {
		return func() {}
	}
	down := s.conn.session.Down()
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-down:
			s.editor.SetPrompt(s.prompt())
			s.editor.Above(s.reportLoss)
		case <-over:
		}
	})
	return func() {
		close(over)
		wg.Wait()
	}
}
