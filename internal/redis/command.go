package redis

import (
	"bytes"
	"net"
)

// This file implements COMMAND and its subcommands, which describe the commands in the table.

// describe returns the description of a command for the reply to COMMAND INFO.
func (cmd *command) describe() []any {
	flags, subs := set{}, []any{}
	for _, f := range shownFlags {
		if cmd.flags&f.flag != 0 {
			flags = append(flags, status(f.name))
		}
	}
	for _, sub := range cmd.subs {
		subs = append(subs, sub.describe())
	}
	categories, tips, keySpecifications := set{}, []any{}, set{} // this server has none
	return []any{cmd.fullName(), cmd.arity, flags, cmd.keys.first, cmd.keys.last, cmd.keys.step, categories, tips, keySpecifications, subs}
}

func runCommand(c *conn, _ [][]byte) error {
	c.array(len(c.s.table.rows))
	for _, cmd := range c.s.table.rows {
		c.reply(cmd.describe())
	}
	return nil
}

func runCommandCount(c *conn, _ [][]byte) error { return c.reply(len(c.s.table.rows)) }

func runCommandInfo(c *conn, args [][]byte) error {
	if len(args) == 2 {
		return runCommand(c, args)
	}
	c.array(len(args) - 2)
	for _, name := range args[2:] {
		if cmd := c.s.table.findFull(name); cmd != nil {
			c.reply(cmd.describe())
		} else {
			c.null()
		}
		if !c.sendPart() {
			return net.ErrClosed
		}
	}
	return nil
}

func runCommandList(c *conn, args [][]byte) error {
	accept := func(string) bool { return true }
	switch {
	case len(args) == 2:
	case len(args) == 5 && equalFold(args[2], "filterby") && equalFold(args[3], "pattern"):
		if err := patternArgs(args[4]); err != nil {
			return err
		}
		p := parsePattern(bytes.ToLower(args[4]))
		accept = func(name string) bool { return p.match([]byte(name)) }
	case len(args) == 5 && equalFold(args[2], "filterby") && equalFold(args[3], "aclcat"):
		accept = func(name string) bool {
			cmd := c.s.table.findFull([]byte(name))
			return cmd != nil && equalFold(args[4], cmd.group)
		}
	case len(args) == 5 && equalFold(args[2], "filterby") && equalFold(args[3], "module"):
		accept = func(string) bool { return false }
	default:
		return errSyntax
	}
	names := []string{}
	for _, cmd := range c.s.table.rows {
		for _, one := range append([]*command{cmd}, cmd.subs...) {
			if name := one.fullName(); accept(name) {
				names = append(names, name)
			}
		}
	}
	return c.reply(names)
}

func runCommandDocs(c *conn, args [][]byte) error {
	found := c.s.table.rows
	if len(args) > 2 {
		found = nil
	}
	for _, name := range args[2:] {
		if cmd := c.s.table.findFull(name); cmd != nil {
			found = append(found, cmd)
		}
	}
	c.aggregate('%', len(found))
	for i := range found {
		for _, v := range documentAll(found[i : i+1]) {
			c.append(v)
		}
		if !c.sendPart() {
			return net.ErrClosed
		}
	}
	return nil
}

// documentAll returns a map from the names of commands to their descriptions, as in the reply to
// COMMAND DOCS.
func documentAll(commands []*command) pairs {
	all := pairs{}
	for _, cmd := range commands {
		doc := pairs{"summary", cmd.summary, "since", cmd.since, "group", cmd.group}
		var arguments []any
		for a := range cmd.arguments() {
			arguments = append(arguments, documentArgument(a))
		}
		if len(arguments) > 0 {
			doc = append(doc, "arguments", arguments)
		}
		if len(cmd.subs) > 0 {
			doc = append(doc, "subcommands", documentAll(cmd.subs))
		}
		all = append(all, cmd.fullName(), doc)
	}
	return all
}

// documentArgument returns the description of an argument for COMMAND DOCS.
func documentArgument(a argument) pairs {
	var flags []any
	if a.optional {
		flags = append(flags, status("optional"))
	}
	if a.multiple {
		flags = append(flags, status("multiple"))
	}
	doc := pairs{"name", a.name, "type", a.kind, "display_text", a.name}
	if a.kind == "key" {
		doc = append(doc, "key_spec_index", 0)
	}
	if len(flags) > 0 {
		doc = append(doc, "flags", flags)
	}
	return doc
}

func runCommandGetKeys(c *conn, args [][]byte) error {
	request := args[2:]
	cmd, _ := c.s.table.lookup(request)
	switch {
	case cmd == nil:
		return &Error{Text: "Invalid command specified"}
	case cmd.keys.first == 0:
		return &Error{Text: "The command has no key arguments"}
	case !cmd.accepts(request):
		return &Error{Text: "Invalid number of arguments specified for command"}
	}
	n := 0
	for range cmd.keysOf(request) {
		n++
	}
	c.array(n)
	for k := range cmd.keysOf(request) {
		if c.bulk(k); !c.sendPart() {
			return net.ErrClosed
		}
	}
	return nil
}
