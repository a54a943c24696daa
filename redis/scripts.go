package redis

// There are no scripts and functions. So those that there are can be flushed, listed and looked
// for, which test suites and clients do first; all else is refused.

func scriptCommands() []*command {
	const flags = noScript
	sub := func(name string, arity int, since, args, summary string, run func(*conn, [][]byte)) *command {
		return &command{name: name, arity: arity, flags: flags, run: run, group: "scripting", since: since, args: args, summary: summary}
	}
	return []*command{
		{name: "function", arity: -2, group: "scripting", since: "7.0.0", summary: "A container for function commands", otherSub: textScripts, subs: []*command{
			sub("flush", -2, "7.0.0", "[flush_type:string]", "Delete all functions, of which there are none", runFunctionFlush),
			sub("list", -2, "7.0.0", "[library-name-pattern:string]", "List all functions, of which there are none", func(c *conn, _ [][]byte) { c.array(0) }),
		}},
		{name: "script", arity: -2, group: "scripting", since: "2.6.0", summary: "A container for scripts management commands", otherSub: textScripts, subs: []*command{
			sub("flush", -2, "2.6.0", "[flush_type:string]", "Remove all scripts, of which there are none", runScriptFlush),
			sub("exists", -3, "2.6.0", "sha1:string...", "Check for scripts, of which there are none", runScriptExists),
		}},
	}
}

// flushArg tells whether the arguments of a FLUSH are nothing, SYNC or ASYNC.
func flushArg(args [][]byte) bool {
	return len(args) == 0 || len(args) == 1 && (equalFold(args[0], "sync") || equalFold(args[0], "async"))
}

func runFunctionFlush(c *conn, args [][]byte) {
	switch {
	case len(args) > 3:
		c.error(wrongSubcommand("function", args[1]))
	case !flushArg(args[2:]):
		c.error("FUNCTION FLUSH only supports SYNC|ASYNC option")
	default:
		c.ok()
	}
}

func runScriptFlush(c *conn, args [][]byte) {
	if !flushArg(args[2:]) {
		c.error("SCRIPT FLUSH only support SYNC|ASYNC option")
		return
	}
	c.ok()
}

func runScriptExists(c *conn, args [][]byte) {
	c.array(len(args) - 2)
	for range args[2:] {
		c.integer(0)
	}
}
