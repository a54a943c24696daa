package redis

import (
	_ "embed"
	"strings"
)

// helpText has a section for each command that has the subcommand HELP. A section holds the lines of
// HELP in Redis, but only for the subcommands that this server supports.
//
//go:embed help.txt
var helpText string

// help returns the subcommand HELP of the command with this name.
func help(name string) *command {
	_, section, _ := strings.Cut(helpText, "# "+name+"\n")
	section, _, _ = strings.Cut(section, "# ")
	run := func(c *conn, _ [][]byte) error {
		lines := []any{status(strings.ToUpper(name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")}
		for line := range strings.Lines(section) {
			lines = append(lines, status(strings.TrimSuffix(line, "\n")))
		}
		return c.reply(append(lines, status("HELP"), status("    Prints this help.")))
	}
	return &command{name: "help", arity: 2, looks: 10, flags: loadingOK | staleOK, run: run, since: "5.0.0", summary: "Show helpful text about the different subcommands"}
}
