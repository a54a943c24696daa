package redis

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Seen is a command of a client and its reply, for [Options.Observe]. It is valid until that
// function returns.
type Seen struct {
	Who  *Caller
	Name string // of the command, in lower case, such as set or config|get; at most 32 bytes if it is unknown

	// Keys are the keys among the arguments. Value is the argument that is set or compared, and
	// Options are the other arguments after the key. Value and Options are nil unless the
	// command has exactly one key: other arguments may be a password.
	Keys    [][]byte
	Value   []byte
	Options [][]byte

	Reply   []byte // RESP2 or RESP3, as the client chose; of a reply that is sent in parts only the beginning
	Version []byte // of a remote store's reply; empty: none
	Took    time.Duration
	Store   bool // the command uses the store
	Locked  bool // the Local is locked
}

// observe passes a command and its reply to Options.Observe. cmd is nil if the command is
// unknown; began is zero if it was refused.
func (c *conn) observe(cmd *command, args [][]byte, began time.Time) {
	if c.s.opts.Observe == nil {
		return
	}
	s := Seen{Who: &c.who, Reply: c.w[min(c.mark, len(c.w)):], Version: c.version, Locked: c.locked}
	if c.sentHead != nil {
		s.Reply = c.sentHead
	}
	c.version = nil
	if !began.IsZero() {
		s.Took = time.Since(began)
	}
	if cmd == nil {
		s.Name = strings.ToLower(printable(args[0], 32))
	} else {
		s.Name, s.Store = cmd.fullName(), cmd.flags&usesStore != 0
		s.arguments(cmd, args)
	}
	c.s.opts.Observe(s)
}

// arguments sets Keys, Value and Options.
func (s *Seen) arguments(cmd *command, args [][]byte) {
	s.Keys = slices.Collect(cmd.keysOf(args))
	if cmd.keys != oneKey {
		return
	}
	at := 0 // index of the value; 0: none
	switch cmd.name {
	case "set", "setnx", "getset", "append", "delifeq", "ss.set", "ss.vdel":
		at = 2
	case "setex", "psetex", "setrange", "setbit":
		at = 3
	}
	for i := 2; i < len(args); i++ {
		if i == at {
			s.Value = args[i]
		} else {
			s.Options = append(s.Options, args[i])
		}
	}
}

// Refused returns the text of the reply, and whether it is an error.
func (s *Seen) Refused() (text string, refused bool) {
	if len(s.Reply) == 0 || s.Reply[0] != '-' {
		return "", false
	}
	text = strings.TrimPrefix(firstLine(s.Reply[1:]), "ERR ")
	text, _, _ = strings.Cut(text, ", with args beginning with") // one may be a password
	return text, true
}

// Missed reports whether the reply means that a key is missing or that a condition was not met.
// why says which.
func (s *Seen) Missed() (why string, missed bool) {
	reply := string(s.Reply)
	null := reply == "$-1\r\n" || reply == "_\r\n" || reply == "*-1\r\n"
	switch s.Name {
	case "get", "getdel", "getex", "ss.get", "ss.version":
		return "missing", null
	case "set":
		if null && s.hasOption("nx") {
			return "exists", true
		}
		return "missing", null && s.hasOption("xx")
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

func (s *Seen) hasOption(lower string) bool {
	return slices.ContainsFunc(s.Options, func(o []byte) bool { return equalFold(o, lower) })
}

// Summary returns the reply in a few words: a status or a number itself, and the size of other
// replies.
func (s *Seen) Summary() string {
	if len(s.Reply) == 0 {
		return "no reply"
	}
	line := firstLine(s.Reply[1:])
	n, err := strconv.Atoi(line)
	switch kind := s.Reply[0]; {
	case kind == '_', n < 0 && kind != ':':
		return "nil"
	case err != nil, kind == ':':
		return line
	case kind == '$', kind == '=':
		return count(n, "byte")
	default:
		return count(n, "item")
	}
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// firstLine returns a line of a reply without its end.
func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\r\n"))
	return string(line)
}
