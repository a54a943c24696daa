package redis

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/internal/observe"
)

// refuseCommand replies with an error to a command that does not run. cmd is nil if the command is unknown.
func (c *conn) refuseCommand(cmd *command, args [][]byte, err error) {
	c.fail(err)
	c.observe(cmd, args, time.Time{}, err)
}

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
	if !began.IsZero() {
		e.Took = time.Since(began)
	}
	if cmd == nil {
		e.Verb = strings.ToLower(printable(args[0], maxWord))
	} else {
		e.Verb = cmd.fullName() // such as set or config|get
		setArguments(&e, cmd, args)
	}
	if err == errMemory {
		e.Value, e.Options = nil, nil // an observer may copy them
	}
	c.setOutcome(&e, reply, err)
	c.version, c.unmet = nil, ""
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

// setOutcome sets Outcome, Cause and Result of e. err is the error with which the command ended.
func (c *conn) setOutcome(e *observe.Event, reply []byte, err error) {
	switch {
	case err != nil:
		e.Outcome, e.Cause = observe.Refused, cause(err)
	case c.unmet != "":
		e.Outcome, e.Cause = observe.No, c.unmet
	default:
		e.Outcome, e.Result = observe.OK, result(reply)
	}
}

// cause returns the reason for an error, without the arguments of the request and on one line.
func cause(err error) string {
	text := err.Error()
	if e, ok := err.(*Error); ok && (e.Code == "" || e.args != "") {
		text = e.Text
	}
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return c == '\r' || c == '\n' }), " ")
}

// result describes a reply by its first line, in RESP: a status or a number unchanged, and the size of any longer reply.
func result(reply []byte) string {
	if len(reply) == 0 {
		return "no reply"
	}
	head, _, _ := bytes.Cut(reply[1:], []byte("\r\n"))
	line := string(head)
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
