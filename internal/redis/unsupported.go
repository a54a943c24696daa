package redis

import (
	"bytes"
	"strings"
)

// Error replies that have the same text in Redis.
var (
	errSyntax       = &Error{Text: "syntax error"}
	errInteger      = &Error{Text: "value is not an integer or out of range"}
	errNoSuchKey    = &Error{Text: "no such key"}
	errSameObjects  = &Error{Text: "source and destination objects are the same"}
	errTooLong      = &Error{Text: "string exceeds maximum allowed size (proto-max-bulk-len)"}
	errDenyBlocking = &Error{Text: "SSUBSCRIBE isn't allowed for a DENY BLOCKING client"}
	errDatabase     = &Error{Text: "DB index is out of range"}
)

// Error replies to commands and options that this server does not support.
var (
	errNoCluster    = &Error{Text: "This instance has cluster support disabled"} // clients look for this text
	errNoMonitor    = &Error{Text: "unsupported: MONITOR; start sscli with -v to see the commands of all clients"}
	errNoScripts    = &Error{Text: "unsupported: this server does not run scripts"}
	errNoExpiry     = &Error{Text: "unsupported: the state store can neither show nor change an expiry; use SET key value PX ms"}
	errExactKey     = &Error{Text: "unsupported: a remote store notifies by exact key: SUBSCRIBE __keyspace@0__:KEY, or start the gateway with --watch KEY"}
	errRemoteEvents = &Error{Text: "unsupported: a remote store does not report misses (m) and new keys (n)"}
)

// notAtomic returns the error for a command that a remote store cannot carry out in one step.
func notAtomic(what string) error {
	return &Error{Text: "unsupported: " + what + " cannot be done atomically on a remote state store"}
}

// otherTypes lists the commands of Redis for types of values that the store does not hold.
const otherTypes = ` blmove blmpop blpop brpop brpoplpush lindex linsert llen lmove lmpop lpop lpos lpush lpushx lrange lrem lset ltrim rpop rpoplpush rpush rpushx
sadd scard sdiff sdiffstore sinter sintercard sinterstore sismember smembers smismember smove spop srandmember srem sscan sunion sunionstore
bzmpop bzpopmax bzpopmin zadd zcard zcount zdiff zdiffstore zincrby zinter zintercard zinterstore zlexcount zmpop zmscore zpopmax zpopmin zrandmember zrange zrangebylex zrangebyscore zrangestore zrank zrem zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan zscore zunion zunionstore
hdel hexists hget hgetall hincrby hincrbyfloat hkeys hlen hmget hmset hrandfield hscan hset hsetnx hstrlen hvals
pfadd pfcount pfdebug pfmerge pfselftest
geoadd geodist geohash geopos georadius georadius_ro georadiusbymember georadiusbymember_ro geosearch geosearchstore
xack xadd xautoclaim xclaim xdel xgroup xinfo xlen xpending xrange xread xreadgroup xrevrange xsetid xtrim
sort sort_ro `

// unknownCommand returns the error for a request whose command is not in the table.
func unknownCommand(args [][]byte) error {
	name, lower := printable(args[0], maxShown), lowerWord(args[0])
	switch lower {
	case "eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro":
		return errNoScripts
	case "cluster", "asking", "readonly", "readwrite":
		return errNoCluster
	case "monitor":
		return errNoMonitor
	}
	if words := strings.ReplaceAll(otherTypes, "\n", " "); !strings.ContainsAny(lower, " \n") && strings.Contains(words, " "+lower+" ") {
		return &Error{Text: "unknown command '" + name + "', the state store holds strings only"}
	}
	var shown strings.Builder
	for _, a := range args[1:] {
		if shown.Len() >= maxShown {
			break
		}
		shown.WriteString("'" + printable(a, maxShown-shown.Len()) + "' ")
	}
	return &Error{Text: "unknown command '" + name + "'", args: ", with args beginning with: " + shown.String()}
}

// unknownSubcommand returns the error for a request whose subcommand does not exist.
func unknownSubcommand(cmd *command, name []byte) error {
	if cmd.otherSub != nil {
		return cmd.otherSub
	}
	return &Error{Text: "unknown subcommand '" + printable(name, maxShown) + "'. Try " + strings.ToUpper(cmd.name) + " HELP."}
}

func wrongSubcommand(args [][]byte) error {
	return &Error{Text: "unknown subcommand or wrong number of arguments for '" + printable(args[1], maxShown) + "'. Try " + strings.ToUpper(lowerWord(args[0])) + " HELP."}
}

func notPermitted(cmd *command) error {
	return &Error{Code: "NOPERM", Text: "this user has no permissions to run the '" + cmd.fullName() + "' command"}
}

// wrongArguments returns the error for a command with too few or too many arguments.
func wrongArguments(name string) error {
	return &Error{Text: "wrong number of arguments for '" + name + "' command"}
}

// maxShown is the maximum number of bytes of an argument in an error message.
const maxShown = 128

// printable returns at most n bytes of b for an error message. As in Redis, a zero byte ends the
// text.
func printable(b []byte, n int) string {
	b = b[:min(len(b), n)]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
