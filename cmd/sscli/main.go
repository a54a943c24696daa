// Command sscli is the command line for the state store of the Azure IoT
// Operations MQTT broker. `sscli help` lists what it can do.
package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/statestorecli"
	"github.com/sscli/sscli/cmd/sscli/internal/topics"
	"github.com/sscli/sscli/format"
)

// Set by the linker in a release.
var (
	buildVersion = ""
	buildCommit  = ""
	buildDate    = ""
)

func main() {
	if process.GuardMain() {
		return
	}
	os.Exit(run(os.Args[0], os.Args[1:]))
}

// run runs the command line and returns the exit code. If a signal ended the work, run re-raises
// the signal after the cleanup, so that a shell sees it.
func run(name string, args []string) int {
	// Of the names of commands. cobra has these for all of a program.
	cobra.EnableCaseInsensitive, cobra.EnableCommandSorting = true, false
	a := newApp()
	root, words := commandLine(a, name, args)
	ctx, asked := signals.Notify(context.Background(), app.FirstWord(root, words))
	a.Signals = asked
	err := execute(a, ctx, root, words)
	code := a.Report(err)
	if e, ok := errors.AsType[*signals.Interrupted](err); ok {
		e.Reraise()
	}
	return code
}

func newApp() *app.App {
	return &app.App{Commands: table(), Topics: topics.All,
		Build: format.Build{Version: buildVersion, Commit: buildCommit, Date: buildDate}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.LookupEnv}
}

// commandLine returns the commands for a command line, and its words as they read them. name is
// the name that the program was called by.
func commandLine(a *app.App, name string, args []string) (root *cobra.Command, words []string) {
	words = make([]string, len(args))
	for i, arg := range args {
		words[i] = app.Protect(arg, false)
	}
	if strings.TrimSuffix(filepath.Base(name), ".exe") == statestorecli.Name {
		root = statestorecli.New(a)
		root.SetArgs(words)
		return root, words
	}
	return app.NewRootFor(a, words), words
}

// execute runs one command line.
func execute(a *app.App, ctx context.Context, root *cobra.Command, words []string) error {
	if complete.IsRequest(words) {
		complete.Register(a, root)
	}
	if err := app.CheckHelp(a, root, words); err != nil {
		app.GuessForm(a, words)
		return err
	}
	cmd, err := root.ExecuteContextC(ctx)
	if u, ok := errors.AsType[*fault.UsageError](err); ok && u.Hint == "" {
		u.Hint = strings.TrimSpace(cmd.CommandPath()) + " --help"
	}
	if err != nil && a.Faults == nil {
		app.GuessForm(a, words)
	}
	return err
}
