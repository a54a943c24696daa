// Command sscli is the command line for the state store of the Azure IoT
// Operations MQTT broker. `sscli help` tells what it does.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/child"
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
