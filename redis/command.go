package redis

import (
	"slices"
	"strings"
)

// What COMMAND replies with is made from the table.

func (c *conn) describeCommand(cmd *command) {
	c.array(10)
	c.text(cmd.fullName())
	c.integer(int64(cmd.arity))
	var names []string
	for _, f := range flagNames {
		if cmd.flags&f.flag != 0 {
			names = append(names, f.name)
		}
	}
	c.set(len(names))
	for _, n := range names {
		c.status(n)
	}
	c.integer(int64(cmd.first))
	c.integer(int64(cmd.last))
	c.integer(int64(cmd.step))
	c.set(0)   // access categories
	c.array(0) // tips
	c.set(0)   // key specifications
	c.array(len(cmd.subs))
	for _, sub := range cmd.subs {
		c.describeCommand(sub)
	}
}

func runCommand(c *conn, args [][]byte) {
	c.array(len(c.s.table.rows))
	for _, cmd := range c.s.table.rows {
		c.describeCommand(cmd)
	}
}

func runCommandCount(c *conn, _ [][]byte) { c.integer(int64(len(c.s.table.rows))) }

// named returns the command of a name such as config|get, or nil.
func (t *table) named(name []byte) *command {
	first, rest, isSub := strings.Cut(string(name), "|")
	cmd := t.find([]byte(first))
	if cmd == nil || !isSub {
		return cmd
	}
	return cmd.sub([]byte(rest))
}

func runCommandInfo(c *conn, args [][]byte) {
	if len(args) == 2 {
		runCommand(c, args)
		return
	}
	c.array(len(args) - 2)
	for _, name := range args[2:] {
		if cmd := c.s.table.named(name); cmd != nil {
			c.describeCommand(cmd)
		} else {
			c.null()
		}
	}
}

func runCommandList(c *conn, args [][]byte) {
	wanted := func(*command) bool { return true }
	switch {
	case len(args) == 2:
	case len(args) == 5 && equalFold(args[2], "filterby") && equalFold(args[3], "pattern"):
		wanted = func(cmd *command) bool { return match(args[4], []byte(cmd.fullName())) }
	case len(args) == 5 && equalFold(args[2], "filterby") && (equalFold(args[3], "module") || equalFold(args[3], "aclcat")):
		wanted = func(*command) bool { return false }
	default:
		c.error(textSyntax)
		return
	}
	var names []string
	for _, cmd := range c.s.table.rows {
		for _, one := range append([]*command{cmd}, cmd.subs...) {
			if wanted(one) {
				names = append(names, one.fullName())
			}
		}
	}
	c.array(len(names))
	for _, n := range names {
		c.text(n)
	}
}

func runCommandDocs(c *conn, args [][]byte) {
	var found []*command
	if len(args) == 2 {
		found = c.s.table.rows
	}
	for _, name := range args[2:] {
		if cmd := c.s.table.named(name); cmd != nil {
			found = append(found, cmd)
		}
	}
	c.mapping(len(found))
	for _, cmd := range found {
		c.documentCommand(cmd)
	}
}

// documentCommand replies with a name and what there is to say of it.
func (c *conn) documentCommand(cmd *command) {
	words := strings.Fields(cmd.args)
	pairs := 3
	if len(words) > 0 {
		pairs++
	}
	if len(cmd.subs) > 0 {
		pairs++
	}
	c.text(cmd.fullName())
	c.mapping(pairs)
	c.text("summary")
	c.text(cmd.summary)
	c.text("since")
	c.text(cmd.since)
	c.text("group")
	c.text(cmd.group)
	if len(words) > 0 {
		c.text("arguments")
		c.array(len(words))
		for _, w := range words {
			c.documentArgument(w)
		}
	}
	if len(cmd.subs) > 0 {
		c.text("subcommands")
		c.mapping(len(cmd.subs))
		for _, sub := range cmd.subs {
			c.documentCommand(sub)
		}
	}
}

// documentArgument documents one as the table has it: name:type, in brackets if it may be left out,
// with dots if it may be repeated.
func (c *conn) documentArgument(word string) {
	var flags []string
	if inner, ok := strings.CutPrefix(word, "["); ok {
		word = strings.TrimSuffix(inner, "]")
		flags = append(flags, "optional")
	}
	if inner, ok := strings.CutSuffix(word, "..."); ok {
		word = inner
		flags = append(flags, "multiple")
	}
	name, kind, _ := strings.Cut(word, ":")
	pairs := [][2]string{{"name", name}, {"type", kind}, {"display_text", name}}
	n := len(pairs)
	if kind == "key" {
		n++
	}
	if len(flags) > 0 {
		n++
	}
	c.mapping(n)
	for _, p := range pairs {
		c.text(p[0])
		c.text(p[1])
	}
	if kind == "key" {
		c.text("key_spec_index")
		c.integer(0)
	}
	if len(flags) > 0 {
		c.text("flags")
		c.array(len(flags))
		for _, f := range flags {
			c.status(f)
		}
	}
}

func runCommandGetKeys(c *conn, args [][]byte) {
	cmd, _ := c.s.lookup(args[2:])
	if cmd == nil {
		c.error("Invalid command specified")
		return
	}
	if cmd.first == 0 {
		c.error("The command has no key arguments")
		return
	}
	if rest := args[2:]; cmd.arity > 0 && len(rest) != cmd.arity || len(rest) < -cmd.arity {
		c.error("Invalid number of arguments specified for command")
		return
	}
	keys := slices.Collect(cmd.keys(args[2:]))
	c.array(len(keys))
	for _, k := range keys {
		c.bulk(k)
	}
}
