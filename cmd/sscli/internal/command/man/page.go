package man

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
)

// page returns the manual page of a command or a topic.
func page(cmd *cobra.Command, e Edition) []byte {
	var r roff
	version := "sscli"
	if e.Version != "" {
		version += " " + e.Version
	}
	r.macro("TH", strings.ToUpper(PageName(cmd)), section(cmd))
	r.b = append(r.b[:len(r.b)-1], fmt.Sprintf(" %s %q %q\n", e.Date, version, "sscli manual")...)
	// No hyphenation, and no blanks to justify lines.
	r.b = append(r.b, ".nh\n.ad l\n"...)
	r.macro("SH", "NAME")
	r.text(PageName(cmd) + " - " + cmd.Short)
	if !cmd.IsAdditionalHelpTopicCommand() {
		r.macro("SH", "SYNOPSIS")
		r.synopsis(cmd)
	}
	r.macro("SH", "DESCRIPTION")
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	r.blocks(Blocks(long))
	if len(cmd.Aliases) > 0 {
		r.macro("PP")
		r.text("Also: " + strings.Join(cmd.Aliases, ", ") + ".")
	}
	r.commands(cmd)
	flags := app.OwnFlags(cmd)
	if !cmd.HasParent() {
		flags = append(flags, app.SharedFlags(cmd)...)
	}
	if len(flags) > 0 {
		r.macro("SH", "OPTIONS")
		r.flags(flags)
	}
	if cmd.Example != "" {
		r.macro("SH", "EXAMPLES")
		r.literal(strings.Split(Outdent(cmd.Example), "\n"))
	}
	r.seeAlso(cmd)
	return r.b
}

// synopsis adds the command line of a command.
func (r *roff) synopsis(cmd *cobra.Command) {
	line := `\fB` + EscapeRoff(cmd.CommandPath()) + `\fR`
	if _, operands, ok := strings.Cut(cmd.Use, " "); ok {
		line += " " + EscapeRoff(operands)
	}
	if cmd.HasAvailableSubCommands() {
		line += ` \fICOMMAND\fR`
	}
	r.b = append(r.b, line+" [flags]\n"...)
}

// commands lists the subcommands of a command, in the groups of its help.
func (r *roff) commands(cmd *cobra.Command) {
	list := func(subs []*cobra.Command) {
		for _, sub := range subs {
			r.macro("TP")
			r.b = append(r.b, `\fB`+EscapeRoff(PageName(sub))+`\fR(`+section(sub)+")\n"...)
			r.text(sub.Short)
		}
	}
	var loose, topics []*cobra.Command
	groups := make(map[string][]*cobra.Command)
	for _, sub := range Documented(cmd)[1:] {
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

// flags lists flags.
func (r *roff) flags(flags []*pflag.Flag) {
	for _, f := range flags {
		value, usage := app.FlagHelp(f)
		line := `\fB` + EscapeRoff("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			line = `\fB` + EscapeRoff("-"+f.Shorthand) + `\fR, ` + line
		}
		if value != "" {
			line += ` \fI` + EscapeRoff(value) + `\fR`
		}
		r.macro("TP")
		r.b = append(r.b, line+"\n"...)
		r.text(usage)
	}
}

// seeAlso lists related pages.
func (r *roff) seeAlso(cmd *cobra.Command) {
	r.macro("SH", "SEE ALSO")
	root := cmd.Root()
	var pages []string
	page := func(c *cobra.Command) {
		if c != nil && c != cmd {
			pages = append(pages, `\fB`+EscapeRoff(PageName(c))+`\fR(`+section(c)+")")
		}
	}
	page(root)
	if cmd.Parent() != root {
		page(cmd.Parent())
	}
	for _, sub := range Documented(root) {
		// The page of sscli lists the topics in a section of their own.
		if cmd != root && sub.IsAdditionalHelpTopicCommand() {
			page(sub)
		}
	}
	if len(pages) > 0 {
		r.b = append(r.b, strings.Join(pages, ",\n")+"\n"...)
		if cmd != root && !cmd.IsAdditionalHelpTopicCommand() {
			r.macro("PP")
			r.text("The flags of all commands are in sscli(1).")
		}
		return
	}
	r.text("https://github.com/sscli/sscli")
}

// blocks adds the blocks of a help text.
func (r *roff) blocks(list []Block) {
	for i, b := range list {
		switch {
		case b.Rows != nil:
			for _, row := range b.Rows {
				r.macro("TP")
				r.b = append(r.b, `\fB`+EscapeRoff(row[0])+`\fR`+"\n"...)
				r.text(row[1])
			}
		case b.Literal != nil:
			r.literal(b.Literal)
		default:
			if i > 0 {
				r.macro("PP")
			}
			r.text(b.Prose)
		}
	}
}
