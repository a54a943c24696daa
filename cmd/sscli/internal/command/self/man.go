package self

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/help"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
)

// NewMan returns the command `sscli man`.
func NewMan(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:         "man DIR",
		Short:       "Write the manual pages to a directory",
		GroupID:     app.GroupMore,
		Annotations: map[string]string{app.Offline: ""},
		Long: `Write the manual pages to a directory, which is created if it is missing.

There is a page for each command (section 1) and each topic (section 7). Packages already
install the pages.

The date of the pages is SOURCE_DATE_EPOCH, else the date of the build, else today.`,
		Args:              usage.ExactArgs("DIR"),
		Example:           "  sscli man pages && man pages/sscli-set.1",
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		RunE: func(_ *cobra.Command, args []string) error {
			info := VersionOf(a.Build)
			date, err := pageDate(a, info.Date)
			if err != nil {
				return err
			}
			return WritePages(cmdline.NewRoot(a), args[0], Edition{info.Version, date})
		},
	}
}

// pageDate returns the date of the pages: SOURCE_DATE_EPOCH
// (reproducible-builds.org/specs/source-date-epoch), else the date of the build, else today.
func pageDate(a *app.App, built string) (string, error) {
	if epoch, _ := a.Env("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return "", fault.Usagef("SOURCE_DATE_EPOCH %.32q: expected seconds since 1970", epoch)
		}
		return time.Unix(seconds, 0).UTC().Format(time.DateOnly), nil
	}
	if date, err := time.Parse(time.RFC3339, built); err == nil {
		return date.UTC().Format(time.DateOnly), nil
	}
	return time.Now().UTC().Format(time.DateOnly), nil
}

// An Edition is the version and the date in the title of every page. Date has the form 2026-01-31.
type Edition struct{ Version, Date string }

// WritePages writes the pages of root, and of all commands and topics below it that help shows, to a
// directory. It creates the directory if necessary.
func WritePages(root *cobra.Command, dir string, e Edition) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, cmd := range Documented(root) {
		name := filepath.Join(dir, PageName(cmd)+"."+section(cmd))
		if err := os.WriteFile(name, []byte(page(cmd, e)), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// Documented returns a command, followed by the commands and topics below it that help shows.
func Documented(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if help.IsShown(sub) {
			list = append(list, Documented(sub)...)
		}
	}
	return list
}

// PageName returns the name of a command's page without the section, such as sscli-lock-run.
func PageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func section(cmd *cobra.Command) string {
	if cmd.IsAdditionalHelpTopicCommand() {
		return "7"
	}
	return "1"
}
