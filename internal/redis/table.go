package redis

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/observe"
)

// A flag is a property of a command.
type flag uint32

const (
	writes flag = 1 << iota
	reads       // changes nothing
	denyOOM
	admin
	pubsub
	noScript
	fast
	loadingOK
	staleOK
	noAuth          // allowed before a login
	atOnce          // runs immediately in a transaction, instead of being queued for EXEC
	whileSubscribed // allowed in RESP2 while the client has subscriptions
	usesStore       // uses keys or the store's clock
	needsLocal      // needs a Local to be atomic
	needsAll        // concerns all clients or keys, so the user must be allowed to use all keys
	costly          // may take more than some 20 µs whatever the size of the request and of its keys
	needsExpiry     // needs a Local because it reads or changes an expiry
	tells           // writes its first key, and tells what the key held
)

// shownFlags are the flags that COMMAND shows, in the same order as Redis.
var shownFlags = []struct {
	flag flag
	name string
}{
	{writes, "write"}, {reads, "readonly"}, {denyOOM, "denyoom"}, {admin, "admin"}, {pubsub, "pubsub"}, {noScript, "noscript"},
	{loadingOK, "loading"}, {staleOK, "stale"}, {fast, "fast"}, {noAuth, "no_auth"},
}

// A keySpec has the indexes of the arguments that are keys, as COMMAND shows them: the first key, the
// last key (if negative, counted from the end), and the distance from each key to the next. The zero
// keySpec means that the command has no keys.
type keySpec struct{ first, last, step int }

var (
	oneKey   = keySpec{1, 1, 1}
	twoKeys  = keySpec{1, 2, 1}
	allKeys  = keySpec{1, -1, 1}
	keyPairs = keySpec{1, -1, 2} // each key is followed by its value
	subKey   = keySpec{2, 2, 1}  // the first argument after the subcommand
)

// A command describes a command or a subcommand of Redis.
type command struct {
	name    string // lower case
	arity   int    // number of arguments, including the name; negative = the minimum
	flags   flag
	keys    keySpec
	run     func(c *conn, args [][]byte) error
	value   int    // the index of the argument that is the value of its only key; 0 = none
	looks   int    // the command counts as this many keys in a transaction, see looksAt
	telling string // the beginnings of options that make the command one that tells; "" = none does

	group, since, summary string // for COMMAND DOCS
	args                  string // see arguments

	parent   *command
	subs     []*command
	otherSub *Error // error reply to an unknown subcommand; nil = the usual error
}

// An argument is a kind of argument of a command.
type argument struct {
	name, kind         string
	optional, multiple bool // multiple: it may be repeated
}

// arguments returns the arguments after the name, from command.args: words such as key:key, [count:integer], which is
// optional, or key:key..., which may be repeated.
func (cmd *command) arguments() iter.Seq[argument] {
	return func(yield func(argument) bool) {
		for word := range strings.FieldsSeq(cmd.args) {
			var a argument
			if word, a.optional = strings.CutPrefix(word, "["); a.optional {
				word = strings.TrimSuffix(word, "]")
			}
			word, a.multiple = strings.CutSuffix(word, "...")
			if a.name, a.kind, _ = strings.Cut(word, ":"); !yield(a) {
				return
			}
		}
	}
}

func (cmd *command) fullName() string {
	if cmd.parent != nil {
		return cmd.parent.name + "|" + cmd.name
	}
	return cmd.name
}

// keysOf returns the arguments that are keys.
func (cmd *command) keysOf(args [][]byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		k := cmd.keys
		if k.first == 0 {
			return
		}
		if k.last < 0 {
			k.last += len(args)
		}
		for i := k.first; i <= k.last && i < len(args); i += k.step {
			if !yield(args[i]) {
				return
			}
		}
	}
}

// access returns what a command does with the i-th of its keys.
func (cmd *command) access(args [][]byte, i int) observe.Access {
	told := cmd.flags&tells != 0
	for option := range strings.FieldsSeq(cmd.telling) {
		told = told || slices.ContainsFunc(args[2:], func(word []byte) bool { return strings.HasPrefix(lowerWord(word), option) })
	}
	switch {
	case cmd.flags&writes == 0, cmd.keys == twoKeys && i == 0 && !told: // the source of COPY
		return observe.Reads
	case told && i == 0:
		return observe.ReadWrite
	}
	return observe.Writes
}

// accepts reports whether the number of arguments, including the name, is valid for the command.
func (cmd *command) accepts(args [][]byte) bool {
	return len(args) == cmd.arity || cmd.arity < 0 && len(args) >= -cmd.arity
}

// looksAt returns how many keys a request counts as in a transaction, see conn.look. A command on few keys
// counts as none, because the number of queued commands is limited.
func (cmd *command) looksAt(args [][]byte) int {
	n := cmd.looks * (1 + len(args)/manyArgs)
	if len(args) > manyArgs {
		n += len(args) / max(1, cmd.keys.step)
	}
	return n
}

// maxOptions is the maximum number of arguments of a command that takes options, because they are read with the Local
// locked. A client that repeats no option needs fewer.
const maxOptions = 64

// tooManyOptions reports whether there are more than maxOptions arguments. A command that takes any number of keys or
// names has no limit.
func (cmd *command) tooManyOptions(args [][]byte) bool {
	if len(args) <= maxOptions || cmd.arity >= 0 {
		return false
	}
	for a := range cmd.arguments() {
		if a.multiple {
			return false
		}
	}
	return true
}

// A table holds all commands.
type table struct {
	byName map[string]*command
	rows   []*command
}

func newTable() table {
	t := table{byName: make(map[string]*command)}
	for _, group := range []struct {
		name string
		rows []*command
	}{
		{"string", stringCommands()}, {"string", editCommands()}, {"generic", keysCommands()}, {"generic", expireCommands()},
		{"generic", objectCommands()}, {"server", scanCommands()}, {"statestore", statestoreCommands()}, {"scripting", scriptsCommands()},
		{"pubsub", pubsubCommands()}, {"transactions", multiCommands()}, {"connection", clientCommands()}, {"server", infoCommands()},
	} {
		for _, cmd := range group.rows {
			t.add(cmd, group.name)
		}
	}
	return t
}

func (t *table) add(cmd *command, group string) {
	t.rows, t.byName[cmd.name] = append(t.rows, cmd), cmd
	if cmd.group == "" {
		cmd.group = group
	}
	for _, sub := range cmd.subs {
		sub.parent, sub.group = cmd, cmd.group
	}
}

// maxWord is more than the length, in bytes, of every name of a command, a subcommand, an option or a setting.
const maxWord = 32

// lowerWord returns a word in lower case, to compare it with names. For a word of more than maxWord bytes, which is
// no name, it returns "": a word may be as long as a value, and the Local may be locked.
func lowerWord(word []byte) string {
	if len(word) > maxWord {
		return ""
	}
	return string(bytes.ToLower(word))
}

// find returns the command with this name, in upper or lower case, or nil if there is none.
func (t *table) find(name []byte) *command {
	var lower [maxWord]byte
	if len(name) > len(lower) {
		return nil
	}
	for i, b := range name {
		if b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	return t.byName[string(lower[:len(name)])]
}

// sub returns the subcommand with this name, or nil if there is none.
func (cmd *command) sub(name []byte) *command {
	for _, sub := range cmd.subs {
		if equalFold(name, sub.name) {
			return sub
		}
	}
	return nil
}

// findFull returns the command or subcommand for a name such as config|get, or nil if there is none.
func (t *table) findFull(name []byte) *command {
	first, rest, isSub := bytes.Cut(name, []byte("|"))
	cmd := t.find(first)
	if cmd == nil || !isSub {
		return cmd
	}
	return cmd.sub(rest)
}

// lookup returns the command of a request, or nil if it is unknown. For a command with subcommands, lookup
// returns the subcommand. If that does not exist, lookup returns the command, and unknownSub is true.
func (t *table) lookup(args [][]byte) (cmd *command, unknownSub bool) {
	cmd = t.find(args[0])
	if cmd == nil || cmd.subs == nil || len(args) == 1 {
		return cmd, false
	}
	if sub := cmd.sub(args[1]); sub != nil {
		return sub, false
	}
	return cmd, true
}
