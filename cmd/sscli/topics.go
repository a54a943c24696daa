package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// helpTopics are pages of help without a command.
func helpTopics() []*cobra.Command {
	topic := func(name, short, text string) *cobra.Command {
		return &cobra.Command{Use: name, Short: short, Long: text}
	}
	return []*cobra.Command{
		topic("exit-codes", "What the exit codes mean", exitCodesHelp()),
		topic("environment", "Variables in place of flags", environmentHelp()),
		topic("output", "The forms of output", outputHelp),
		topic("quoting", "How keys and values are written", quotingHelp),
	}
}

func exitCodesHelp() string {
	var b strings.Builder
	b.WriteString("The exit codes are a contract; scripts may rely on them.\n\n")
	for _, c := range exitCodes() {
		fmt.Fprintf(&b, "  %-6s %s\n", c.code, c.meaning)
	}
	b.WriteString("\nA lost answer to a write is looked into: 0 with a warning if the key is as the write\nwanted it, 124 if the write was not applied, 11 if that cannot be told.")
	return b.String()
}

func environmentHelp() string {
	var b strings.Builder
	b.WriteString("From the first to the last that counts: a flag, the context that -c names, an SSCLI_\nvariable, the chosen context, an AIO_ variable. Whoever names the host voids port and\nTLS of those after him; so do a certificate and its key, and the ways to log in. A flag\nor an SSCLI_ variable that names the broker voids a chosen context as a whole; a line\non stderr tells when a variable overrides one (-q: no line).\n\n")
	vars := config.Variables()
	names := make([]string, 0, len(vars))
	for name := range vars {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "  %-20s %s\n", "--"+name, strings.Join(vars[name], ", "))
	}
	b.WriteString("\nSSCLI_HISTFILE is the file of the shell's history, empty for none; without it that is\nsscli/history in XDG_STATE_HOME, or in ~/.local/state.\n")
	b.WriteString("\nAIO_MQTT_CLIENT_ID becomes the beginning of a client id of its own: to take a pod's\nown id would disconnect the pod. SSCLI_CONTEXT chooses as sscli context use does, none\nfor none. The contexts are in $XDG_CONFIG_HOME/sscli/config.yaml, by default below\n~/.config (on Windows %AppData%). sscli context show tells what counts and who says so.\nALL_PROXY is not for the hosts that NO_PROXY names, nor for this machine. NO_COLOR,\nCLICOLOR, CLICOLOR_FORCE and TERM decide about color as usual.")
	return b.String()
}

const outputHelp = `human     for people, on a terminal; it may change
raw       for pipes, the default there: get of one key gives the value's bytes and
          nothing else; any other result is a line of fields separated by tabs, with C
          escapes: after a write the reply and the version, or - where there is none
json      one object a line, also for errors (on stderr); bytes that are not UTF-8
          stand in a field whose name ends in _b64
template=TEXT
          a Go template over the fields of the JSON object, as in
          -o 'template={{.key}} {{.version.wall_ms}}'

raw, json, template and the exit codes are contracts. Results go to stdout, all else to
stderr. Bytes from the store reach a terminal escaped, except in the raw form.`

const quotingHelp = `On the command line the shell does the quoting; sscli takes every byte as it is. Where
results and the lines of the shell and of a batch quote, they do it alike:

  "..."     with \n \r \t \\ \" and \xHH for any byte
  '...'     nothing has a meaning inside (lines only)
  # ...     a comment, at the beginning of a word (lines only)

A lone - in place of VALUE is standard input, to the last byte; in a line "-" is the
value -. An operand may begin with a minus and a digit (set temp -5); -- ends the
flags for operands with any other beginning.`
