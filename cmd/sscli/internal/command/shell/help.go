package shell

import (
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/directive"
	"github.com/sscli/sscli/cmd/sscli/internal/help"
)

// shellHelp says how to edit lines and leave the shell. It is part of `help` and `sscli shell --help`.
const shellHelp = `An open quote continues on the next line. Tab completes commands, flags and keys. Ctrl-R
searches the history. Ctrl-C ends a command or clears the line, Ctrl-D leaves.
An entry that begins with a space, or holds a value over 256 bytes, is not kept in the
history.
`

// overview prints all commands, directives and dot-commands, for `help` without a topic.
func (s *shell) overview() error {
	var b strings.Builder
	width := help.Columns(s.app.Stdout)
	write := func(title string, rows [][2]string) {
		b.WriteString(title + "\n" + help.Rows(rows, width))
	}
	root := newLineRoot(s.newLine())
	b.WriteString(strings.TrimPrefix(help.List(root, "", width), "\n"))
	write("Lines:", directive.Usages())
	write("Shell:", append(dots(), [2]string{"exit [CODE], quit", "leave the shell, with an exit code"}))
	b.WriteString(help.Fill("\n"+shellHelp+"\nFor more: help COMMAND, help output, help quoting, help exit-codes, help environment.", width))
	return s.print(b.String())
}
