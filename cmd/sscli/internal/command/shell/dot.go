package shell

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/directive"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/help"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/repl"
)

// dots returns the usage of each dot-command.
func dots() []directive.Usage {
	return []directive.Usage{
		{Name: ".exit", Help: "leave the shell"},
		{Name: ".help", Help: "list the commands"},
		{Name: ".output", Operands: "[FORM]", Help: "print or change the form of results"},
		{Name: ".quit", Help: "leave the shell"},
		{Name: ".timeout", Operands: "[DURATION]", Help: "print or change the time limit of a request"},
		{Name: ".trace", Operands: "[on|off]", Help: "show or change whether every packet is printed"},
	}
}

func (s *shell) dot(words []repl.Word) error {
	name, rest := strings.ToLower(words[0].Text), words[1:]
	settings := &s.conn.settings
	if len(rest) > 1 {
		return fault.Usagef("too many words: expected %s", dotUsage(name))
	}
	value := ""
	if len(rest) == 1 {
		value = rest[0].Text
	}
	switch name {
	case ".help":
		return s.overview()
	case ".exit", ".quit":
		return leave(words)
	case ".output":
		if value == "" {
			return s.print(cmp.Or(settings.Output, s.app.Output))
		}
		if err := s.app.SetOutput(value); err != nil {
			return &fault.UsageError{Err: err, Hint: suggest.Try("`sscli help output`")}
		}
		settings.Output = value
		return nil
	case ".timeout":
		if value == "" {
			return s.print(cmp.Or(settings.Timeout, s.conn.options.Timeout).String())
		}
		d, err := usage.ParseDuration(".timeout", value, usage.Positive)
		if err == nil {
			settings.Timeout = d
		}
		return err
	case ".trace":
		switch value {
		case "on", "off":
			settings.Trace = value == "on"
			return nil
		case "":
			return s.print(map[bool]string{true: "on", false: "off"}[settings.Trace])
		}
		return fault.Usagef(".trace %.32q: must be on or off", value)
	}
	var names []string
	for _, d := range dots() {
		names = append(names, d.Name)
	}
	hint := ".help"
	if near := suggest.Near(name, names); len(near) > 0 {
		hint = dotUsage(near[0])
	}
	return &fault.UsageError{Err: fmt.Errorf("unknown dot-command %.64q", words[0].Text), Hint: suggest.Say(hint)}
}

func dotUsage(name string) string {
	for _, d := range dots() {
		if d.Name == name {
			return d.String()
		}
	}
	return name
}

func (s *shell) print(text string) error {
	_, err := fmt.Fprintln(s.app.Stdout, text)
	return fault.Output(err)
}

// shellHelp says how to edit lines and leave the shell. It is part of `help` and `sscli shell --help`.
const shellHelp = `An open quote continues on the next line. Tab completes commands, flags and keys. Ctrl-R
searches the history. Ctrl-C ends a command or clears the line, Ctrl-D leaves.
An entry that begins with a space, or holds a value over 256 bytes, is not kept in the
history.
`

// overview prints all commands, directives and dot-commands, for `help` without a topic.
func (s *shell) overview() error {
	var b strings.Builder
	width := help.Columns(s.app.Stdout.File)
	write := func(title string, usages []directive.Usage) {
		var rows [][2]string
		for _, u := range usages {
			rows = append(rows, [2]string{u.String(), u.Help})
		}
		b.WriteString(title + "\n" + help.Rows(rows, width))
	}
	root := newLineRoot(s.newLine())
	b.WriteString(strings.TrimPrefix(help.List(root, "", width), "\n"))
	write("Lines:", directive.Usages())
	write("Shell:", append(dots(), directive.Usage{Name: "exit", Operands: "[CODE], quit", Help: "leave the shell, with an exit code"}))
	b.WriteString("\n" + help.Fill(shellHelp+"\nFor more: help COMMAND, help output, help quoting, help exit-codes, help environment.", width))
	return s.print(b.String())
}
