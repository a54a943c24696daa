package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/format"
)

// Set by the linker in a release.
var (
	buildVersion = ""
	buildCommit  = ""
	buildDate    = ""
)

func (a *app) newVersion() *cobra.Command {
	return &cobra.Command{
		Use:         "version",
		Short:       "Print which sscli this is",
		GroupID:     groupMore,
		Annotations: map[string]string{offline: ""},
		Args:        noArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.emit(build())
		},
	}
}

// build falls back on what the Go command recorded.
func build() format.Build {
	b := format.Build{
		Version: buildVersion, Commit: buildCommit, Date: buildDate,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || b.Version != "" {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		}
	}
	return b
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%.64q: %s takes no operand", unprotect(args[0]), cmd.CommandPath())
	}
	return nil
}
