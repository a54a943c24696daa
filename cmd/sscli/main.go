// Command sscli is the command line for the state store of the Azure IoT
// Operations MQTT broker. `sscli help` tells what it does.
package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/child"
	"github.com/sscli/sscli/format"
)

// Set by the linker in a release.
var (
	buildVersion = ""
	buildCommit  = ""
	buildDate    = ""
)

func main() {
	if child.GuardMain() {
		return
	}
	os.Exit(run(os.Args[0], os.Args[1:]))
}

// run is main with an exit code. A signal that ended the work ends the process,
// once everything is tidied up, so that a shell sees it.
func run(name string, args []string) int {
	cobra.EnableCaseInsensitive = true // of the names of commands; cobra has it for all of a program
	a := newApp()
	ctx, stop := context.Background(), func() {}
	if !isHarmless(args) {
		ctx, a.signals, stop = withSignals(ctx)
	}
	err := a.execute(ctx, name, args)
	stop()
	code := a.report(err)
	if e, ok := errors.AsType[*interruptError](err); ok {
		e.reraise()
	}
	return code
}

func newApp() *app {
	return &app{commands: table(), topics: helpTopics,
		build: format.Build{Version: buildVersion, Commit: buildCommit, Date: buildDate}, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.LookupEnv}
}

// execute runs one command line, under the name that the program was called by.
func (a *app) execute(ctx context.Context, name string, args []string) error {
	var root *cobra.Command
	if strings.TrimSuffix(filepath.Base(name), ".exe") == statestoreCLI {
		root = newStatestoreCLI(a)
	} else {
		root = newRootFor(a, args)
	}
	protected := make([]string, len(args))
	for i, arg := range args {
		protected[i] = protect(arg, false)
	}
	if isCompletion(args) {
		a.setCompletions(root)
	}
	root.SetArgs(protected)
	cmd, err := root.ExecuteContextC(ctx)
	if u, ok := errors.AsType[*usageError](err); ok && u.hint == "" {
		u.hint = strings.TrimSpace(cmd.CommandPath()) + " --help"
	}
	if err != nil && a.faults == nil {
		a.guessForm(protected)
	}
	return err
}
