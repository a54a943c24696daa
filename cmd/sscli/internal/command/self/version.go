package self

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
)

// NewVersion returns the command `sscli version`.
func NewVersion(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:         "version",
		Short:       "Print the version",
		GroupID:     app.GroupMore,
		Annotations: map[string]string{app.Offline: ""},
		Long: `Print the version of sscli, and the commit that it was built from.

In a build of a checkout, modified means that files differed from the commit. go run
records no commit, except with -buildvcs=true. sscli --version prints the same.`,
		Example: "  sscli version\n  sscli version -o json",
		Args:    usage.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.Emit(VersionOf(a.Build))
		},
	}
}

// VersionOf returns b with the Go version and the platform. If the linker has set no version in b, Of also
// adds the data that the Go command has recorded in the binary.
func VersionOf(b format.Build) format.Build {
	b.Go, b.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
	if b.Version != "" {
		return b
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		b = recorded(b, info)
	}
	return b
}

// recorded adds to b the data that the Go command has recorded in the binary. Only go build and go
// install in a checkout record the commit.
func recorded(b format.Build, info *debug.BuildInfo) format.Build {
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
