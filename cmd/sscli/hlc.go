package main

import (
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/format"
)

func newHLC(a *app) *cobra.Command {
	parent := &cobra.Command{
		Use:         "hlc",
		Short:       "Look at versions and fencing tokens, without a broker",
		GroupID:     groupDebug,
		Annotations: map[string]string{offline: ""},
		Long: `Versions and fencing tokens are hybrid logical clock readings,
WALLMS:COUNTER:NODE, as in 1696374425000:0:node-1.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unknown hlc command %.64q: want now, parse or compare", unprotect(args[0]))
			}
			return usage("no hlc command: want now, parse or compare")
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	parent.AddCommand(
		&cobra.Command{
			Use:   "now",
			Short: "Print a reading of the local clock",
			Args:  noArgs,
			RunE: func(*cobra.Command, []string) error {
				v, err := wire.NewClock(uuid.NewString(), time.Now).Tick()
				if err != nil {
					return err
				}
				return a.emit(format.Clock{Op: "now", Version: v})
			},
		},
		&cobra.Command{
			Use:   "parse HLC",
			Short: "Take a version apart",
			RunE: func(_ *cobra.Command, args []string) error {
				if len(args) != 1 {
					return usage("%d operands: want hlc parse HLC", len(args))
				}
				v, err := wire.ParseVersion(unprotect(args[0]))
				if err != nil {
					return &usageError{err: err}
				}
				return a.emit(format.Clock{Op: "parse", Version: v})
			},
		},
		&cobra.Command{
			Use:   "compare HLC HLC",
			Short: "Tell which of two versions is newer",
			Long: `Print which of two versions is newer, as the store orders them: by wall clock, then
counter, then node. The raw form is -1, 0 or 1. The exit code is 0.`,
			RunE: func(_ *cobra.Command, args []string) error {
				if len(args) != 2 {
					return usage("%d operands: want hlc compare HLC HLC", len(args))
				}
				var v [2]wire.Version
				for i, arg := range args {
					var err error
					if v[i], err = wire.ParseVersion(unprotect(arg)); err != nil {
						return &usageError{err: err}
					}
				}
				return a.emit(format.Compare{A: v[0], B: v[1], Order: v[0].Compare(v[1])})
			},
		},
	)
	return parent
}
