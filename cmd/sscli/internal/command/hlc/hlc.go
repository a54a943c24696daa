// Package hlc is the command `sscli hlc`, which prints, parses and compares versions and fencing tokens
// without a broker. Package wire defines their format.
package hlc

import (
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
)

// New returns the command `sscli hlc`.
func New(a *app.App) *cobra.Command {
	return app.WithCommands(&cobra.Command{
		Use:         "hlc",
		Short:       "Parse and compare versions and fencing tokens",
		GroupID:     app.GroupDebug,
		Annotations: map[string]string{app.Offline: ""},
		Long: `Parse and compare versions and fencing tokens, without a broker.

Both are hybrid logical clock readings, WALLMS:COUNTER:NODE, as in
1696374425000:0:node-1.`,
		Example: "  sscli hlc parse 1696374425000:0:node-1\n  sscli hlc now",
	},
		&cobra.Command{
			Use:     "parse HLC",
			Short:   "Print the parts and the time of a version",
			Example: "  sscli hlc parse 1696374425000:0:node-1\n  sscli hlc parse \"$(sscli get setpoint --version-only -o raw)\"",
			Args:    usage.ExactArgs("HLC"),
			RunE: func(_ *cobra.Command, args []string) error {
				v, err := wire.ParseVersion(args[0])
				if err != nil {
					return &fault.UsageError{Err: err}
				}
				return a.Emit(format.Clock{Op: "parse", Version: v})
			},
		},
		&cobra.Command{
			Use:     "now",
			Short:   "Print a reading of the local clock",
			Example: "  sscli hlc now",
			Args:    usage.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				v, err := wire.NewClock(uuid.NewString(), time.Now).Tick()
				if err != nil {
					return err
				}
				return a.Emit(format.Clock{Op: "now", Version: v})
			},
		},
		&cobra.Command{
			Use:   "compare HLC HLC",
			Short: "Print which of two versions is newer",
			Long: `Print which of two versions is newer, as the store orders them.

The order is by wall clock, then counter, then node. The raw form is -1, 0 or 1. The
exit code is 0 in each case.`,
			Example: "  sscli hlc compare 1696374425000:0:node-1 1696374427500:0:node-2",
			Args:    usage.ExactArgs("HLC", "HLC"),
			RunE: func(_ *cobra.Command, args []string) error {
				var v [2]wire.Version
				for i, arg := range args {
					var err error
					if v[i], err = wire.ParseVersion(arg); err != nil {
						return &fault.UsageError{Err: err}
					}
				}
				return a.Emit(format.Compare{A: v[0], B: v[1], Order: v[0].Compare(v[1])})
			},
		},
	)
}
