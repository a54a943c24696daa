// Command sscli is a command line for the state store of the Azure IoT Operations
// MQTT broker. `sscli help` lists its commands.
package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/help"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/cmd/sscli/internal/statestorecli"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/format"
)

// The linker sets these variables in a release.
var (
	buildVersion = ""
	buildCommit  = ""
	buildDate    = ""
)

func main() {
	if process.GuardMain() {
		return
	}
	if code, ok := process.InitMain(); ok {
		os.Exit(code)
	}
	os.Exit(run(os.Args[0], os.Args[1:]))
}

// run runs the command line and returns the exit code. If a signal ended the command, run re-raises
// the signal after the cleanup, so that a shell sees it.
func run(name string, args []string) int {
	// Command names ignore case, and help keeps the order of the table. Cobra stores both settings
	// in global variables.
	cobra.EnableCaseInsensitive, cobra.EnableCommandSorting = true, false
	return runApp(newApp(), name, args)
}

func runApp(a *app.App, name string, args []string) int {
	var ctx context.Context
	ctx, a.Signals = signals.Notify(context.Background())
	a.UseStandardStreams(ctx)
	err := runLine(ctx, a, name, args)
	code := a.Report(err)
	if e, ok := errors.AsType[*signals.Interrupted](err); ok && a.Settings.Output != app.Plugin {
		e.Reraise()
	}
	return code
}

func newApp() *app.App {
	return &app.App{Commands: table(), Topics: help.Topics,
		Build: format.Build{Version: buildVersion, Commit: buildCommit, Date: buildDate},
		Stdin: os.Stdin, Stdout: &terminal.Output{File: os.Stdout}, Stderr: &terminal.Output{File: os.Stderr}, Env: os.LookupEnv}
}

// runLine runs a command line. name is argv[0], which selects the command line of sscli, of
// statestore-cli or of the kubectl plugin.
func runLine(ctx context.Context, a *app.App, name string, args []string) error {
	switch strings.TrimSuffix(filepath.Base(name), ".exe") {
	case statestorecli.Name:
		return cmdline.RunRoot(ctx, a, statestorecli.New(a), args)
	case cmdline.PluginName:
		var err error
		if args, a.Env, err = cmdline.SetupPlugin(args, a.Env); err != nil {
			return err
		}
	}
	return cmdline.Run(ctx, a, args)
}
