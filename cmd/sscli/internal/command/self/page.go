package self

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/help"
)

func page(cmd *cobra.Command, e Edition) string {
	var r roff
	topic := cmd.IsAdditionalHelpTopicCommand()
	// .nh turns off hyphenation, and .ad l turns off justification.
	fmt.Fprintf(&r, ".TH \"%s\" \"%s\" %s %q \"sscli manual\"\n.nh\n.ad l\n",
		escape(strings.ToUpper(PageName(cmd))), section(cmd), e.Date, strings.TrimSpace("sscli "+e.Version))
	r.macro("SH", "NAME")
	r.text(PageName(cmd) + " - " + cmd.Short)
	if !topic {
		r.macro("SH", "SYNOPSIS")
		operands := escape(help.Operands(cmd))
		if cmd.HasAvailableSubCommands() {
			operands += " " + italic("COMMAND")
		}
		r.WriteString(bold(cmd.CommandPath()) + operands + " [flags]\n")
	}
	r.macro("SH", "DESCRIPTION")
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	r.blocks(help.Blocks(long))
	if len(cmd.Aliases) > 0 {
		r.macro("PP")
		r.text("Also: " + strings.Join(cmd.Aliases, ", ") + ".")
	}
	r.commands(cmd)
	r.options(cmd)
	if cmd.Example != "" {
		r.macro("SH", "EXAMPLES")
		r.literal(strings.Split(help.Outdent(cmd.Example), "\n"))
	}
	r.macro("SH", "SEE ALSO")
	if !cmd.HasParent() {
		r.text("https://github.com/sscli/sscli")
		return r.String()
	}
	r.WriteString(strings.Join(related(cmd), ",\n") + "\n")
	if !topic {
		r.macro("PP")
		r.text("The flags of all commands are in sscli(1).")
	}
	return r.String()
}

// commands adds the subcommands and topics of a command, grouped as in its help.
func (r *roff) commands(cmd *cobra.Command) {
	for i, g := range help.Groups(cmd) {
		first := g.Commands[0]
		switch topics := first.IsAdditionalHelpTopicCommand(); {
		case topics:
			r.macro("SH", "TOPICS")
		case i == 0:
			r.macro("SH", "COMMANDS")
		}
		if first.GroupID != "" {
			r.macro("SS", strings.TrimSuffix(g.Title, ":"))
		}
		for _, sub := range g.Commands {
			r.item(reference(sub), sub.Short)
		}
	}
}

// options adds the flags of a command. The page of sscli also has the flags that all commands share.
func (r *roff) options(cmd *cobra.Command) {
	flags := help.OwnFlags(cmd)
	if !cmd.HasParent() {
		flags = append(flags, help.SharedFlags(cmd)...)
	}
	if len(flags) > 0 {
		r.macro("SH", "OPTIONS")
	}
	for _, f := range flags {
		value, usage := help.FlagHelp(f)
		term := bold("--" + f.Name)
		if f.Shorthand != "" {
			term = bold("-"+f.Shorthand) + ", " + term
		}
		if value != "" {
			term += " " + italic(value)
		}
		r.item(term, usage)
	}
}

func related(cmd *cobra.Command) []string {
	root := cmd.Root()
	pages := []string{reference(root)}
	if cmd.Parent() != root {
		pages = append(pages, reference(cmd.Parent()))
	}
	for _, sub := range root.Commands() {
		if sub != cmd && sub.IsAdditionalHelpTopicCommand() {
			pages = append(pages, reference(sub))
		}
	}
	return pages
}

func reference(cmd *cobra.Command) string { return bold(PageName(cmd)) + "(" + section(cmd) + ")" }
