package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/format"
)

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "version",
		Short:       "Print which sscli this is",
		GroupID:     groupMore,
		Annotations: map[string]string{offline: ""},
		Args:        noArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.emit(build(a.build))
		},
	}
}

// build completes what the linker has set with what the Go command recorded.
func build(b format.Build) format.Build {
	b.Go, b.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
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
