package redis

import (
	"bytes"
	"iter"
	"strings"
)

// flag is a property of a command.
type flag uint32

const (
	writes          flag = 1 << iota
	reads                // only
	denyOOM              // may need more memory
	admin                //
	pubsub               //
	noScript             //
	fast                 //
	loadingOK            //
	staleOK              //
	noAuth               // before AUTH too
	noMulti              // not in a transaction
	noMonitor            // hidden from MONITOR in Redis
	atOnce               // in a transaction too, not after EXEC
	whileSubscribed      // in RESP2 too
	usesStore            // touches keys or their clock
	inOneStep            // needs an Engine
	expiry               // needs an Engine, as it is about expiry
)

// flagNames are those that COMMAND shows, in the order of Redis.
var flagNames = []struct {
	flag flag
	name string
}{
	{writes, "write"}, {reads, "readonly"}, {denyOOM, "denyoom"}, {admin, "admin"}, {pubsub, "pubsub"}, {noScript, "noscript"},
	{loadingOK, "loading"}, {staleOK, "stale"}, {fast, "fast"}, {noAuth, "no_auth"}, {noMulti, "no_multi"},
}

// A command is a row of the table.
type command struct {
	name  string // lower case
	arity int    // with the name; negative: at least so many
	flags flag

	first, last, step int // where keys are, as COMMAND says it; 0: there are none

	run    func(*conn, [][]byte)
	remote func(*conn, [][]byte) // in place of run where there is no Engine; nil: run

	group, since, args, summary string // for COMMAND DOCS

	parent   *command
	subs     []*command
	otherSub string // the reply to other subcommands; empty: that they are unknown
}

func (cmd *command) fullName() string {
	if cmd.parent != nil {
		return cmd.parent.name + "|" + cmd.name
	}
	return cmd.name
}

// keys are those among the arguments.
func (cmd *command) keys(args [][]byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if cmd.first == 0 {
			return
		}
		last := cmd.last
		if last < 0 {
			last += len(args)
		}
		for i := cmd.first; i <= last && i < len(args); i += cmd.step {
			if !yield(args[i]) {
				return
			}
		}
	}
}

// table is all commands.
type table struct {
	byName map[string]*command
	rows   []*command
}

func newTable() table {
	t := table{byName: make(map[string]*command)}
	for _, rows := range [][]*command{stringCommands(), bitCommands(), keyCommands(), expiryCommands(), objectCommands(), storeCommands(), scriptCommands(), pubsubCommands(), transactionCommands(), connectionCommands(), serverCommands()} {
		t.rows = append(t.rows, rows...)
	}
	for _, cmd := range t.rows {
		t.byName[cmd.name] = cmd
		for _, sub := range cmd.subs {
			sub.parent = cmd
		}
	}
	return t
}

// find returns a command, in any case, or nil.
func (t *table) find(name []byte) *command {
	var lower [32]byte
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

// sub returns a subcommand, or nil.
func (cmd *command) sub(name []byte) *command {
	for _, sub := range cmd.subs {
		if equalFold(name, sub.name) {
			return sub
		}
	}
	return nil
}

// lookup returns the command of a request, or nil. Of a command with subcommands it is the
// subcommand if that is known; unknownSub says that it is not.
func (s *Server) lookup(args [][]byte) (cmd *command, unknownSub bool) {
	cmd = s.table.find(args[0])
	if cmd == nil || cmd.subs == nil || len(args) == 1 {
		return cmd, false
	}
	if sub := cmd.sub(args[1]); sub != nil {
		return sub, false
	}
	return cmd, true
}

// The refusals of what is not here.
const (
	textNoCluster   = "ERR This instance has cluster support disabled" // what clients look for
	textNoMonitor   = "ERR unsupported: MONITOR is not here; start sscli with -v to see the commands of all clients"
	textScripts     = "ERR unsupported: scripts are not run here"
	textExpiry      = "ERR unsupported: the state store neither tells nor changes an expiry; use SET key value PX ms"
	textExactKey    = "unsupported: a remote store notifies by exact key: SUBSCRIBE __keyspace@0__:KEY, or start the gateway with --watch KEY"
	textDatabase    = "DB index is out of range"
	textRemoteFlags = "unsupported: a remote store does not report misses (m) and new keys (n)"
)

// notAtomic says that a remote store cannot do something in one step.
func notAtomic(what string) string {
	return "unsupported: " + what + " cannot be done atomically on a remote state store"
}

// notHere says why a command needs an engine.
func (s *Server) notHere(cmd *command) string {
	if cmd.flags&expiry != 0 {
		return textExpiry
	}
	return "ERR " + notAtomic(strings.ToUpper(strings.ReplaceAll(cmd.fullName(), "|", " ")))
}

// otherTypes are the commands of Redis for what the store does not hold.
const otherTypes = ` blmove blmpop blpop brpop brpoplpush lindex linsert llen lmove lmpop lpop lpos lpush lpushx lrange lrem lset ltrim rpop rpoplpush rpush rpushx
sadd scard sdiff sdiffstore sinter sintercard sinterstore sismember smembers smismember smove spop srandmember srem sscan sunion sunionstore
bzmpop bzpopmax bzpopmin zadd zcard zcount zdiff zdiffstore zincrby zinter zintercard zinterstore zlexcount zmpop zmscore zpopmax zpopmin zrandmember zrange zrangebylex zrangebyscore zrangestore zrank zrem zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan zscore zunion zunionstore
hdel hexists hget hgetall hincrby hincrbyfloat hkeys hlen hmget hmset hrandfield hscan hset hsetnx hstrlen hvals
pfadd pfcount pfdebug pfmerge pfselftest
geoadd geodist geohash geopos georadius georadius_ro georadiusbymember georadiusbymember_ro geosearch geosearchstore
xack xadd xautoclaim xclaim xdel xgroup xinfo xlen xpending xrange xread xreadgroup xrevrange xsetid xtrim
sort sort_ro `

const (
	runScripts = ` eval eval_ro evalsha evalsha_ro fcall fcall_ro `
	ofCluster  = ` cluster asking readonly readwrite `
)

// wrongSubcommand is the text for arguments that a subcommand does not take.
func wrongSubcommand(of string, name []byte) string {
	return "unknown subcommand or wrong number of arguments for '" + printable(name, 128) + "'. Try " + strings.ToUpper(of) + " HELP."
}

// unknownCommand refuses what is not in the table.
func unknownCommand(args [][]byte) string {
	name := " " + strings.ToLower(string(args[0])) + " "
	if !bytes.ContainsAny(args[0], " \n") {
		switch words := strings.ReplaceAll(otherTypes, "\n", " "); {
		case strings.Contains(runScripts, name):
			return textScripts
		case strings.Contains(ofCluster, name):
			return textNoCluster
		case name == " monitor ":
			return textNoMonitor
		case strings.Contains(words, name):
			return "ERR unknown command '" + printable(args[0], 128) + "', the state store holds strings only"
		}
	}
	var shown strings.Builder
	for _, a := range args[1:] {
		if shown.Len() >= 128 {
			break
		}
		shown.WriteString("'" + printable(a, 128-shown.Len()) + "' ")
	}
	return "ERR unknown command '" + printable(args[0], 128) + "', with args beginning with: " + shown.String()
}
