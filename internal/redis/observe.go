package redis

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/internal/observe"
)

// observe passes a command and its reply to Options.Observe. cmd is nil if the command is
// unknown; began is zero if the command was refused, and err is the error with which it ended.
func (c *conn) observe(cmd *command, args [][]byte, began time.Time, err error) {
	if c.s.opts.Observe == nil {
		return
	}
	reply := c.w[min(c.mark, len(c.w)):]
	if c.sentHead != nil {
		reply = c.sentHead // the reply is sent in parts
	}
	e := observe.Event{
		Op: observe.Request, Time: time.Now(), Port: "redis", Client: c.who.ID, User: c.who.User,
		Received: len(reply), Version: string(c.version),
	}
	c.version = nil
	if !began.IsZero() {
		e.Took = time.Since(began)
	}
	if cmd == nil {
		e.Verb = strings.ToLower(printable(args[0], maxWord))
	} else {
		e.Verb = cmd.fullName() // such as set or config|get
		setArguments(&e, cmd, args)
	}
	setOutcome(&e, reply, err)
	e.Minor = (cmd == nil || cmd.flags&usesStore == 0) && e.Outcome != observe.Refused
	c.s.opts.Observe(&c.who, e, !began.IsZero(), c.locked)
}

// setArguments sets Keys, Access, Value and Options of e. Value and Options stay nil unless the command's
// only key is its first argument, because an argument of another command may be a password.
func setArguments(e *observe.Event, cmd *command, args [][]byte) {
	for key := range cmd.keysOf(args) {
		e.Access = append(e.Access, cmd.access(args, len(e.Keys)))
		e.Keys = append(e.Keys, string(key[:min(len(key), maxKey+1)]))
	}
	if cmd.keys != oneKey {
		return
	}
	for i := 2; i < len(args); i++ {
		if i == cmd.value {
			e.Value = args[i]
		} else {
			e.Options = append(e.Options, args[i])
		}
	}
}

// setOutcome sets Outcome, Cause and Result of e according to the reply, and to err if the command ended with it.
func setOutcome(e *observe.Event, reply []byte, err error) {
	if len(reply) > 0 && reply[0] == '-' {
		text := strings.TrimPrefix(firstLine(reply[1:]), "ERR ")
		if refused, ok := err.(*Error); ok && refused.args != "" {
			text = refused.Text
		}
		e.Outcome, e.Cause = observe.Refused, text
	} else if cause, missed := missed(e, string(reply[:min(len(reply), maxHead)])); missed {
		e.Outcome, e.Cause = observe.No, cause
	} else {
		e.Outcome, e.Result = observe.OK, result(reply)
	}
}

// missed reports whether a reply means that a key is missing or that a condition was not met. cause is
// a text for Event.Cause, such as missing or exists.
func missed(e *observe.Event, reply string) (cause string, missed bool) {
	null := reply == "$-1\r\n" || reply == "_\r\n" || reply == "*-1\r\n"
	switch e.Verb {
	case "get", "getdel", "getex", "ss.get", "ss.version":
		return "missing", null
	case "set":
		if null && hasOption(e, "nx") {
			return "exists", true
		}
		return "missing", null && hasOption(e, "xx")
	case "setnx", "msetnx":
		return "exists", reply == ":0\r\n"
	case "del", "unlink", "exists", "touch", "delex", "delifeq", "ss.del":
		return "missing", reply == ":0\r\n"
	case "ss.set":
		return "exists", strings.HasPrefix(reply, "*2\r\n:-1\r\n")
	case "ss.vdel":
		if reply == ":-1\r\n" {
			return "another value", true
		}
		return "missing", reply == ":0\r\n"
	case "exec":
		return "a watched key changed", null
	}
	return "", false
}

func hasOption(e *observe.Event, lower string) bool {
	return slices.ContainsFunc(e.Options, func(o []byte) bool { return equalFold(o, lower) })
}

// result returns a reply in a few words: a status or a number unchanged, and the size of any longer
// reply.
func result(reply []byte) string {
	if len(reply) == 0 {
		return "no reply"
	}
	line := firstLine(reply[1:])
	n, err := strconv.Atoi(line)
	switch kind := reply[0]; {
	case kind == '_', n < 0 && kind != ':':
		return "nil"
	case err != nil, kind == ':':
		return line
	case kind == '$', kind == '=':
		return observe.Count(n, "byte")
	default:
		return observe.Count(n, "item")
	}
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\r\n"))
	return string(line)
}
