package help

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/format"
)

// Topics returns the help topics, in the order in which help shows them.
func Topics() []*cobra.Command {
	topic := func(name, short, text string) *cobra.Command {
		return &cobra.Command{Use: name, Short: short, Long: text}
	}
	return []*cobra.Command{
		topic("connection", "The flags of all commands", connectionHelp()),
		topic("exit-codes", "What the exit codes mean", exitCodesHelp()),
		topic("environment", "Environment variables and precedence", environmentHelp()),
		topic("output", "The forms of output", outputHelp()),
		topic("quoting", "How to write keys and values", quotingHelp),
	}
}

func connectionHelp() string {
	var b strings.Builder
	b.WriteString(`Every command has the flags below. A name in brackets is the environment variable for the
flag; sscli help environment gives the order of precedence. sscli context set NAME keeps
connection flags under a name, sscli context show prints the settings in effect, and sscli
doctor checks the connection step by step.

At least one of --url, --host, --via, --context and --embedded is required, or one of their
variables.
`)
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(fs)
	for _, section := range config.Sections() {
		flags := make([]*pflag.Flag, len(section.Flags))
		for i, name := range section.Flags {
			flags[i] = fs.Lookup(name)
		}
		b.WriteString("\n" + section.Heading + "\n" + Rows(FlagRows(flags), Width))
	}
	b.WriteString(`
The path of a WebSocket is /mqtt unless the URL has one: ws://host:port/path. In batch, shell,
watch and lock, and in get and del of more than 64 keys, --timeout applies to connecting, and
then to each request.

A password is never an argument: --password-file reads it from a file, --askpass asks for it on
the terminal.`)
	return b.String()
}

func exitCodesHelp() string {
	var b strings.Builder
	b.WriteString("The exit codes are a contract; scripts may rely on them.\n\n")
	var rows [][2]string
	for _, c := range fault.Codes() {
		rows = append(rows, [2]string{c.Code, c.Meaning})
	}
	b.WriteString(Rows(rows, Width) + "\nIf the reply to a write is lost, sscli reads the key back. After a plain set or del the exit\ncode is 0, with a warning, if the key holds the value or is gone. It is 124 if the key's\nversion shows that a set was not applied. Otherwise it is 11: set with NX, NEX, PX or a\nfencing token, del with a fencing token, and vdel never end with 0 then.")
	return b.String()
}

// environmentHelp returns the text of the topic environment: the environment variables, and the order
// of precedence of settings.
func environmentHelp() string {
	var b strings.Builder
	b.WriteString("In order of precedence, a setting comes from a flag, the context that -c names, an\nSSCLI_ variable, the chosen context, or an AIO_ variable. sscli context show prints every\nsetting and its source.\n\n" +
		"Some settings belong together. If a source names the host, the port and the TLS setting\nof all later sources are ignored. The same holds for a certificate and its key, and for\nthe settings of a login.\n\n" +
		"If a flag or an SSCLI_ variable names a broker, the whole chosen context is ignored. If a\nvariable overrides a context, sscli context use says so on stderr. Other commands say it on a\nterminal, once a day for each context and value, and with -v each time. -q leaves it out.\n\n")
	vars := config.Variables()
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		fmt.Fprintf(&b, "  %-22s %s\n", "--"+name, strings.Join(vars[name], ", "))
	}
	b.WriteString("\nSSCLI_HISTFILE names the file of the shell's history. If it is empty there is no history.\nThe default is sscli/history in XDG_STATE_HOME, or in ~/.local/state.\n\n" +
		"SSCLI_CONTEXT chooses a context as sscli context use does; none chooses no context. The\ncontexts are in $XDG_CONFIG_HOME/sscli/config.yaml, by default below ~/.config (on\nWindows %AppData%).\n\n" +
		"AIO_MQTT_CLIENT_ID becomes the beginning of a random client id. The id itself belongs to\nthe pod, and connecting with it would disconnect the pod.\n\n" +
		"ALL_PROXY is not used for the hosts in NO_PROXY or for this machine. NO_COLOR, CLICOLOR,\nCLICOLOR_FORCE and TERM control color as usual.")
	return b.String()
}

// outputHelp returns the text of the topic output: the forms of output, and the fields of each result.
func outputHelp() string {
	var rows [][2]string
	for _, op := range format.Ops() {
		if !op.Stderr {
			rows = append(rows, [2]string{op.By, op.Name + ": " + op.Fields})
		}
	}
	return outputForms + "\n\nEach result has an op and these fields:\n\n" + Rows(rows, Width)
}

// outputForms is the beginning of the text that outputHelp returns.
const outputForms = `human     for people; the default on a terminal; it may change; JSON is indented, text is
          shown as it is, other bytes as a hex dump; --show selects another form
wide      human, with nothing cut: long lines, whole values, whatever the terminal's width
raw       for pipes and scripts; the default elsewhere; get of one key prints the bytes of
          the value and nothing else; any other result is a line of fields separated by
          tabs, with C escapes; after a write these are the reply and the version, or - if
          there is no version
json      one object a line, also for errors (on stderr); bytes that are not UTF-8
          are in a field whose name ends in _b64
template=TEXT
          a Go template over the fields of the JSON object, as in
          -o 'template={{.key}} {{.version.wall_ms}}'; a field that no result has is an error;
          {{.value}} prints the bytes; {{base64 .value}}, {{json .value}} and
          {{quote .value}} encode them

raw, json, template and the exit codes are contracts. Results go to stdout, everything
else to stderr. Bytes from the store are escaped on a terminal, except in the raw form.`

// quotingHelp is the text of `sscli help quoting`.
const quotingHelp = `On the command line, your shell does the quoting, and sscli takes every byte as it is.

In results, and in the lines of sscli's shell and of a batch, quoting is the same:

  "..."     with \n \r \t \\ \" and \xHH for any byte
  '...'     nothing has a special meaning inside (lines only)
  # ...     a comment, at the beginning of a word (lines only)

A quote inside a word that does not begin with it is refused: write '{"a":1}' and "it's".
In a file, a quote must be closed in its own line.

A line is one command. It has no variables, patterns, pipes or redirections: a word such
as ; | && or > that is not quoted is refused, and so is a word that ends in ;.

If VALUE is a lone -, it is read from standard input, to the last byte. In a line, "-" in
quotes is the value -. An operand may begin with a minus and a digit (set temp -5). Write
-- before any other operand that begins with a minus.`
