package redis

// This file implements FUNCTION and SCRIPT, but only the subcommands FLUSH, LIST and EXISTS, because test
// suites and clients send these first. They find nothing, because the server has no functions and no
// scripts. All other subcommands are refused.

func scriptsCommands() []*command {
	return []*command{
		{name: "function", arity: -2, since: "7.0.0", summary: "A container for function commands", otherSub: errNoScripts, subs: []*command{
			{name: "flush", arity: -2, flags: noScript, run: runFunctionFlush, since: "7.0.0", args: "[flush_type:string]", summary: "Delete all functions, of which there are none"},
			{name: "list", arity: -2, flags: noScript, run: runFunctionList, since: "7.0.0", args: "[library-name-pattern:string]", summary: "List all functions, of which there are none"},
		}},
		{name: "script", arity: -2, since: "2.6.0", summary: "A container for scripts management commands", otherSub: errNoScripts, subs: []*command{
			{name: "flush", arity: -2, flags: noScript, run: runScriptFlush, since: "2.6.0", args: "[flush_type:string]", summary: "Remove all scripts, of which there are none"},
			{name: "exists", arity: -3, flags: noScript, run: runScriptExists, since: "2.6.0", args: "sha1:string...", summary: "Check for scripts, of which there are none"},
		}},
	}
}

func runFunctionFlush(c *conn, args [][]byte) error {
	switch {
	case len(args) > 3:
		return wrongSubcommand(args)
	case !isFlushMode(args[2:]):
		return &Error{Text: "FUNCTION FLUSH only supports SYNC|ASYNC option"}
	}
	return c.reply(replyOK)
}

func runFunctionList(c *conn, _ [][]byte) error { return c.reply([]any{}) }

func runScriptFlush(c *conn, args [][]byte) error {
	if !isFlushMode(args[2:]) {
		return &Error{Text: "SCRIPT FLUSH only support SYNC|ASYNC option"}
	}
	return c.reply(replyOK)
}

func runScriptExists(c *conn, args [][]byte) error {
	c.array(len(args) - 2)
	for range args[2:] {
		c.integer(0)
	}
	return nil
}
