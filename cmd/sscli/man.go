package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "man DIR",
		Short:       "Write the manual pages to a directory",
		GroupID:     groupMore,
		Annotations: map[string]string{offline: ""},
		Long: `Write the manual pages of all commands (section 1) and topics (section 7) to a directory,
which is made if it is missing. Packages hold them already.

Their date is SOURCE_DATE_EPOCH, or that of the build, or today.`,
		Example: "  sscli man pages && man pages/sscli-set.1",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("%d operands: want man DIR", len(args))
			}
			info := build(a.build)
			date, err := manDate(a, info.Date)
			if err != nil {
				return err
			}
			return writeManual(wholeTable(a), unprotect(args[0]), edition{info.Version, date})
		},
	}
}

// wholeTable are all commands, with those that cobra adds when it runs one.
func wholeTable(a *app) *cobra.Command {
	root := newRoot(a)
	root.InitDefaultCompletionCmd("completion")
	return root
}

// manDate follows reproducible-builds.org/specs/source-date-epoch.
func manDate(a *app, built string) (string, error) {
	if epoch, _ := a.env("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return "", usage("SOURCE_DATE_EPOCH %.32q: want seconds since 1970", epoch)
		}
		return time.Unix(seconds, 0).UTC().Format(time.DateOnly), nil
	}
	if date, err := time.Parse(time.RFC3339, built); err == nil {
		return date.UTC().Format(time.DateOnly), nil
	}
	return time.Now().UTC().Format(time.DateOnly), nil
}

// An edition is what the title of every page says.
type edition struct{ version, date string }

func writeManual(root *cobra.Command, dir string, e edition) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, cmd := range documented(root) {
		page := manPage(cmd, e)
		name := filepath.Join(dir, manName(cmd)+"."+manSection(cmd))
		if err := os.WriteFile(name, page, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// documented lists the commands and topics that help tells of, a command before
// those below it.
func documented(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" || sub.IsAdditionalHelpTopicCommand() {
			list = append(list, documented(sub)...)
		}
	}
	return list
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func manSection(cmd *cobra.Command) string {
	if cmd.IsAdditionalHelpTopicCommand() {
		return "7"
	}
	return "1"
}

// A roff is a page in the man macros, see man(7).
type roff struct{ b []byte }

// manPage is the page of a command or topic.
func manPage(cmd *cobra.Command, e edition) []byte {
	var r roff
	version := "sscli"
	if e.version != "" {
		version += " " + e.version
	}
	r.macro("TH", strings.ToUpper(manName(cmd)), manSection(cmd))
	r.b = append(r.b[:len(r.b)-1], fmt.Sprintf(" %s %q %q\n", e.date, version, "sscli manual")...)
	// No hyphens of the formatter's own, no blanks that only fill lines.
	r.b = append(r.b, ".nh\n.ad l\n"...)
	r.macro("SH", "NAME")
	r.text(manName(cmd) + " - " + cmd.Short)
	if !cmd.IsAdditionalHelpTopicCommand() {
		r.macro("SH", "SYNOPSIS")
		r.synopsis(cmd)
	}
	r.macro("SH", "DESCRIPTION")
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	r.blocks(blocks(long))
	if len(cmd.Aliases) > 0 {
		r.macro("PP")
		r.text("Also: " + strings.Join(cmd.Aliases, ", ") + ".")
	}
	r.commands(cmd)
	if cmd.HasAvailableLocalFlags() || !cmd.HasParent() {
		r.macro("SH", "OPTIONS")
		r.flags(cmd.LocalFlags())
	}
	if cmd.Example != "" {
		r.macro("SH", "EXAMPLES")
		r.literal(strings.Split(outdent(cmd.Example), "\n"))
	}
	r.seeAlso(cmd)
	return r.b
}

func (r *roff) synopsis(cmd *cobra.Command) {
	line := `\fB` + roffText(cmd.CommandPath()) + `\fR`
	if _, operands, ok := strings.Cut(cmd.Use, " "); ok {
		line += " " + roffText(operands)
	}
	if cmd.HasAvailableSubCommands() {
		line += ` \fICOMMAND\fR`
	}
	r.b = append(r.b, line+" [flags]\n"...)
}

// commands lists those below a command, in the groups of its help.
func (r *roff) commands(cmd *cobra.Command) {
	list := func(subs []*cobra.Command) {
		for _, sub := range subs {
			r.macro("TP")
			r.b = append(r.b, `\fB`+roffText(manName(sub))+`\fR(`+manSection(sub)+")\n"...)
			r.text(sub.Short)
		}
	}
	var loose, topics []*cobra.Command
	groups := make(map[string][]*cobra.Command)
	for _, sub := range documented(cmd)[1:] {
		switch {
		case sub.Parent() != cmd:
		case sub.IsAdditionalHelpTopicCommand():
			topics = append(topics, sub)
		case sub.GroupID == "":
			loose = append(loose, sub)
		default:
			groups[sub.GroupID] = append(groups[sub.GroupID], sub)
		}
	}
	if len(loose)+len(groups) > 0 {
		r.macro("SH", "COMMANDS")
	}
	for _, g := range cmd.Groups() {
		if len(groups[g.ID]) > 0 {
			r.macro("SS", strings.TrimSuffix(g.Title, ":"))
			list(groups[g.ID])
		}
	}
	list(loose)
	if len(topics) > 0 {
		r.macro("SH", "TOPICS")
		list(topics)
	}
}

func (r *roff) flags(fs *pflag.FlagSet) {
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := flagHelp(f)
		line := `\fB` + roffText("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			line = `\fB` + roffText("-"+f.Shorthand) + `\fR, ` + line
		}
		if value != "" {
			line += ` \fI` + roffText(value) + `\fR`
		}
		r.macro("TP")
		r.b = append(r.b, line+"\n"...)
		r.text(usage)
	})
}

// flagHelp is what stands behind a flag, and what it does, with its default as --help
// has it.
func flagHelp(f *pflag.Flag) (value, usage string) {
	value, usage = pflag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "0", "false", "[]":
	default:
		usage += " (default " + f.DefValue + ")"
	}
	return value, usage
}

func (r *roff) seeAlso(cmd *cobra.Command) {
	r.macro("SH", "SEE ALSO")
	root := cmd.Root()
	var pages []string
	page := func(c *cobra.Command) {
		if c != nil && c != cmd {
			pages = append(pages, `\fB`+roffText(manName(c))+`\fR(`+manSection(c)+")")
		}
	}
	page(root)
	if cmd.Parent() != root {
		page(cmd.Parent())
	}
	for _, sub := range documented(root) {
		// The page of sscli lists its topics elsewhere already.
		if cmd != root && sub.IsAdditionalHelpTopicCommand() {
			page(sub)
		}
	}
	if len(pages) > 0 {
		r.b = append(r.b, strings.Join(pages, ",\n")+"\n"...)
		if cmd != root && !cmd.IsAdditionalHelpTopicCommand() {
			r.macro("PP")
			r.text("The flags that all commands have are those of sscli(1).")
		}
		return
	}
	r.text("https://github.com/sscli/sscli")
}

func (r *roff) blocks(list []block) {
	for i, b := range list {
		switch {
		case b.rows != nil:
			for _, row := range b.rows {
				r.macro("TP")
				r.b = append(r.b, `\fB`+roffText(row[0])+`\fR`+"\n"...)
				r.text(row[1])
			}
		case b.literal != nil:
			r.literal(b.literal)
		default:
			if i > 0 {
				r.macro("PP")
			}
			r.text(b.prose)
		}
	}
}

func (r *roff) literal(lines []string) {
	if !bytes.HasSuffix(r.b, []byte("\n.SH \"EXAMPLES\"\n")) {
		r.macro("PP")
	}
	r.b = append(r.b, ".RS 4\n.nf\n"...)
	for _, line := range lines {
		r.b = append(r.b, roffText(line)+"\n"...)
	}
	r.b = append(r.b, ".fi\n.RE\n"...)
}

func (r *roff) macro(name string, args ...string) {
	r.b = append(r.b, "."+name...)
	for _, arg := range args {
		r.b = append(r.b, ` "`+roffText(arg)+`"`...)
	}
	r.b = append(r.b, '\n')
}

// text adds prose. A formatter fills the lines, so these are for people who look at
// the source.
func (r *roff) text(prose string) {
	const width = 72
	var line string
	for word := range strings.FieldsSeq(prose) {
		word = roffText(word)
		if line != "" && len(line)+len(word) >= width {
			r.b = append(r.b, line+"\n"...)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	r.b = append(r.b, line+"\n"...)
}

// roffText is a text in which nothing has a meaning for a formatter. What ASCII
// characters look like is said too: formatters would make others of some.
func roffText(text string) string {
	var b strings.Builder
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		b.WriteString(`\&`) // no request
	}
	for _, c := range text {
		switch c {
		case '\\':
			b.WriteString(`\e`)
		case '-':
			b.WriteString(`\-`)
		case '"':
			b.WriteString(`\(dq`)
		case '\'':
			b.WriteString(`\(aq`)
		case '`':
			b.WriteString(`\(ga`)
		case '^':
			b.WriteString(`\(ha`)
		case '~':
			b.WriteString(`\(ti`)
		default:
			if c > '~' {
				fmt.Fprintf(&b, `\[u%04X]`, c)
			} else {
				b.WriteRune(c)
			}
		}
	}
	return b.String()
}

// A block is a part of a help text: prose, or rows of a term and what it means, or
// lines that stay as they are.
type block struct {
	prose   string
	rows    [][2]string
	literal []string
}

// blocks takes a help text apart. Prose begins at the left and has no two blanks in
// a row; what is laid out otherwise is a table if each line can be a part of one.
func blocks(text string) []block {
	var list []block
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(text), "\t", "    "), "\n\n") {
		lines := strings.Split(strings.Trim(paragraph, "\n"), "\n")
		for len(lines) > 0 {
			laidOut := isLaidOut(lines, 0)
			end := 1
			for end < len(lines) && isLaidOut(lines, end) == laidOut {
				end++
			}
			run := lines[:end]
			lines = lines[end:]
			if !laidOut {
				// Cobra's help of completion has headings as in Markdown.
				list = append(list, block{prose: strings.TrimPrefix(strings.Join(run, " "), "#### ")})
				continue
			}
			run = strings.Split(outdent(strings.Join(run, "\n")), "\n")
			if rows, err := tableRows(run); err == nil {
				list = append(list, block{rows: rows})
			} else {
				list = append(list, block{literal: run})
			}
		}
	}
	return list
}

func isLaidOut(lines []string, i int) bool {
	line := lines[i]
	if strings.HasPrefix(line, " ") || strings.Contains(strings.ReplaceAll(line, ".  ", ". "), "  ") {
		return true
	}
	// A term alone, with its meaning below it.
	return !strings.Contains(line, " ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "  ")
}

var errNoTable = errors.New("no table")

// tableRows reads lines of a term, two blanks or more, and its meaning, which may go
// on in lines that are indented.
func tableRows(lines []string) ([][2]string, error) {
	var rows [][2]string
	for i, line := range lines {
		term, meaning, ok := strings.Cut(line, "  ")
		switch {
		case strings.HasPrefix(line, " "):
			if len(rows) == 0 {
				return nil, errNoTable
			}
			last := &rows[len(rows)-1]
			last[1] = strings.TrimSpace(last[1] + " " + strings.TrimSpace(line))
		case ok:
			rows = append(rows, [2]string{term, strings.TrimSpace(meaning)})
		case i+1 < len(lines) && strings.HasPrefix(lines[i+1], " "):
			rows = append(rows, [2]string{term, ""})
		default:
			return nil, errNoTable
		}
	}
	return rows, nil
}

// outdent takes away the blanks that all lines begin with.
func outdent(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	indent := slices.Min(indents(lines))
	for i, line := range lines {
		lines[i] = strings.TrimRight(line[min(indent, len(line)):], " ")
	}
	return strings.Join(lines, "\n")
}

func indents(lines []string) []int {
	widths := []int{1 << 10}
	for _, line := range lines {
		if bare := strings.TrimLeft(line, " "); bare != "" {
			widths = append(widths, len(line)-len(bare))
		}
	}
	return widths
}
