package suggest

import (
	"slices"
	"strconv"
	"strings"
)

// A Meaning is what a user may have meant by words that do not name a command.
type Meaning struct {
	Hint Hint   // begins with a command of sscli; nil = none
	Why  string // why the state store cannot do what the user meant; empty = it can
}

func (m Meaning) isKnown() bool { return m.Hint != nil || m.Why != "" }

// Command returns what users of other tools mean by words, or the zero Meaning if it does not know the
// words. words must not be empty. under is the path of the command after which the user typed the
// words, such as "lock", or "" for sscli itself, or "help TOPIC" for operands of help. The hint contains
// keys, names and patterns from the words, but no values.
func Command(under string, words []string) Meaning {
	word := strings.ToLower(words[0])
	if len(words) > 1 {
		if m := Command(strings.TrimSpace(under+" "+word), words[1:]); m.isKnown() {
			return m
		}
	}
	return lookUp(habits(), under, word, words[1:])
}

// Other is like [Command], for words whose first word is an operand, not a possible name of a command.
func Other(under string, words []string) Meaning {
	return lookUp(habits(), under, anyWord, words)
}

// anyWord marks a row for [Other]: it applies to every word.
const anyWord = "*"

func lookUp(table []habit, under, word string, operands []string) Meaning {
	for _, h := range table {
		if h.under != under || !slices.Contains(strings.Fields(h.typed), word) {
			continue
		}
		m := Meaning{Why: h.why}
		if h.means != "" {
			m.Hint = Try(h.means).fillOperands(word, operands)
		}
		return m
	}
	return Meaning{}
}

// fillOperands returns the hint with the operands of the words that the user typed. Of redis-cli's words,
// those that begin with p take milliseconds, and the others take seconds.
func (h Hint) fillOperands(word string, operands []string) Hint {
	if len(operands) == 0 {
		return h
	}
	first := operands[0]
	for _, place := range []Place{Key, Name, Pattern, Optional, Address} {
		h = h.Fill(place, first)
	}
	h = h.Fill(Keys, operands...).Fill(Prefix, strings.TrimSuffix(first, "*"))
	if len(operands) > 1 {
		h = h.Fill(NewKey, operands[1])
		unit := "s"
		if word[0] == 'p' {
			unit = "ms"
		}
		if n, err := strconv.ParseUint(operands[1], 10, 30); err == nil && n > 0 && !strings.HasSuffix(word, "at") {
			h = h.Fill(Duration, operands[1]+unit)
		}
	}
	return h
}

// A habit maps words that users of another tool type to the command of sscli that does the same.
type habit struct {
	under string // the path of the parent command; empty = the root
	typed string // the words of other tools, separated by spaces
	means string // a hint as [Try] parses it; empty = none
	why   string // why the state store cannot do what the words mean; empty = it can
}

// habits returns the table of habits, for users of redis-cli, etcdctl, kubectl, consul and the
// Mosquitto tools. A word that is a command of sscli needs no row.
func habits() []habit {
	const (
		expiry     = "the protocol sets an expiry only together with a value"
		inPlace    = "the state store cannot change a value in place"
		atOnce     = "the state store has no transactions"
		guarded    = "`sscli lock run LOCK -- CMD...`, with get and set in CMD"
		onlyBytes  = "every value is plain bytes"
		oneStore   = "there is one state store, without databases"
		connection = "`sscli help connection`"
	)
	return []habit{
		// Keys
		{"", "ls list dir find search dbsize", "`sscli scan [PATTERN]`", ""},
		{"", "exists has contains", "`sscli get KEY --version-only`: the exit code is 1 if the key is missing", ""},
		{"", "cat read show print fetch value mget", "`sscli get KEY...`", ""},
		{"", "getset", "`sscli get KEY`, then `sscli set KEY VALUE`", atOnce},
		{"", "getdel", "`sscli get KEY`, then `sscli del KEY`", atOnce},
		{"", "getex", "`sscli get KEY`", expiry},
		{"", "strlen len size", "`sscli get KEY -o 'template={{len .value}}'`", ""},
		{"", "add create new write store save update replace apply patch mset msetnx", "`sscli set KEY VALUE`", ""},
		{"", "setnx", "`sscli set KEY VALUE --nx`", ""},
		{"", "setex psetex", "`sscli set KEY VALUE --ttl DURATION`", ""},
		{"", "remove unset unlink erase drop destroy purge", "`sscli del KEY...`", ""},
		{"", "cad delex delif", "`sscli vdel KEY VALUE`", ""},
		{"", "edit vi vim nano modify change", "`sscli edit KEY`", ""},
		{"", "explain describe inspect", "`sscli explain KEY`", ""},
		{"", "subscribe psubscribe sub listen notify notifications tail follow stream observe monitor events log logs poll", "`sscli watch KEY...`", ""},
		{"", "wait", "`sscli watch KEY --until set`", ""},
		{"", "publish pub", "`sscli set KEY VALUE`", "the state store has keys and no channels"},
		{"", "ttl pttl expiretime pexpiretime", "`sscli lock status KEY`, if `KEY` is a lock", "the protocol cannot tell a key's expiry"},
		{"", "expire pexpire expireat pexpireat touch", "`sscli set KEY VALUE --ttl DURATION`", expiry},
		{"", "persist", "`sscli set KEY VALUE`, without --ttl", expiry},
		{"", "incr decr incrby decrby incrbyfloat append setrange setbit cas", guarded, inPlace},
		{"", "multi exec discard unwatch txn transaction eval evalsha fcall", guarded, atOnce},
		{"", "rename renamenx mv move", "`sscli get KEY -f FILE`, then `sscli set NEW -f FILE`, then `sscli del KEY`", "the state store cannot rename a key"},
		{"", "cp copy", "`sscli get KEY -f FILE`, then `sscli set NEW -f FILE`", "the state store cannot copy a key"},
		{"", "flushall flushdb truncate wipe", "`sscli scan`, then `sscli del KEY...`", "the state store cannot delete all keys at once"},
		{"", "compaction defrag alarm downgrade maint", "", "the broker looks after its store by itself"},
		{"", "select swapdb", "`sscli context list`", oneStore},
		{"", "db databases namespace namespaces", "`sscli context list`", oneStore},
		{"", "type", "`sscli get KEY`", onlyBytes},
		{"", "hget hset hgetall hdel hmget hmset hkeys hvals hlen hscan hexists hincrby lpush rpush lpop rpop lset " +
			"lrange lindex linsert lrem ltrim llen sadd srem smembers sismember scard sscan spop zadd zrange zrank zrem zscan zscore zcard " +
			"xadd xread xrange xlen json.get json.set", "", onlyBytes + ", there are no hashes, lists, sets or streams"},

		// Copies of the store
		{"", "export backup dump snapshot bgsave", "`sscli export`", ""},
		{"", "import restore", "`sscli import FILE`", ""},
		{"", "load", "`sscli import FILE`; for the records of a data set `sscli dataset load --help`", ""},
		{"snapshot", "save", "`sscli export`", ""},
		{"snapshot", "restore", "`sscli import FILE`", ""},

		// Locks
		{"", "locks", "`sscli lock list`", ""},
		{"", "acquire take", "`sscli lock acquire NAME`", ""},
		{"", "release unlock", "`sscli lock release NAME`", ""},
		{"", "renew extend refresh keepalive keep-alive", "`sscli lock renew NAME`", ""},
		{"", "hold elect election leader", "`sscli lock hold NAME`", ""},
		{"", "mutex semaphore flock", "`sscli lock run NAME -- CMD...`", ""},
		{"", "who owner holder", "`sscli lock status NAME`", ""},
		{"", "lease leases", "`sscli lock --help`", ""},
		{"lease", "grant", "`sscli set --help`", ""},
		{"lease", "revoke", "`sscli lock release NAME`", ""},
		{"lease", "keep-alive", "`sscli lock renew NAME`", ""},
		{"lease", "list", "`sscli lock list`", ""},
		{"lease", "timetolive", "`sscli lock status NAME`", "the protocol cannot tell a key's expiry"},
		{"", "session sessions", "`sscli lock list`", ""},
		{"lock", "ls", "`sscli lock list`", ""},
		{"lock", "show get info who owner holder check inspect describe state test", "`sscli lock status NAME`", ""},
		{"lock", "take obtain grab create new set add lock nx", "`sscli lock acquire NAME`", ""},
		{"lock", "try trylock", "`sscli lock acquire NAME --try`", ""},
		{"lock", "unlock free delete del remove rm drop", "`sscli lock release NAME`", ""},
		{"lock", "steal force kill revoke", "`sscli lock break NAME`", ""},
		{"lock", "extend refresh keepalive keep-alive touch", "`sscli lock renew NAME`", ""},
		{"lock", "exec with do guard start wrap", "`sscli lock run NAME -- CMD...`", ""},
		{"lock", "keep wait maintain", "`sscli lock hold NAME`", ""},
		{"lock", anyWord, "`sscli lock run NAME -- CMD...`, or `sscli lock hold NAME`", ""},
		{"lock", "trace watch log logs history events monitor follow", "`sscli lock trace NAME`", ""},

		// Help
		{"help TOPIC", "locks locking lease leases mutex fencing fence token tokens", "`sscli help lock`", ""},

		// The connection and the broker
		{"auth", "can-i", "`sscli policy can --help`", ""},
		{"", "can-i", "`sscli policy can --help`", ""},
		{"", "port-forward tunnel", "`sscli forward`", ""},
		{"", "auth login logout signin acl user users role roles connect credentials password", connection, ""},
		{"", "config ctx contexts profile profiles connection connections target targets cluster clusters", "`sscli context list`", ""},
		{"", "configure setup init", "`sscli context set NAME --url URL`", ""},
		{"", "use switch", "`sscli context use NAME`", ""},
		{"", "whoami", "`sscli context show`", ""},
		{"", "env", "`sscli help environment`", ""},
		{"config", "get-contexts get-clusters get-users list ls contexts", "`sscli context list`", ""},
		{"config", "use-context use", "`sscli context use NAME`", ""},
		{"config", "current-context view show get", "`sscli context show`", ""},
		{"config", "set-context set-cluster set-credentials set", "`sscli context set NAME`", ""},
		{"config", "delete-context unset rm", "`sscli context rm NAME`", ""},
		{"context", "ls contexts get-contexts all", "`sscli context list`", ""},
		{"context", "delete del remove forget delete-context", "`sscli context rm NAME`", ""},
		{"context", "current current-context get view describe print which cat", "`sscli context show`", ""},
		{"context", "switch select choose default activate use-context", "`sscli context use NAME`", ""},
		{"context", "add create new put save set-context", "`sscli context set NAME --url URL`", ""},
		{"context", "edit update modify change", "`sscli context set NAME`, with the flags to change", ""},
		{"context", "unset", "`sscli context set NAME --unset FLAG`", ""},
		{"context", "rename mv move copy cp", "`sscli context set NEW`, with the same flags, then `sscli context rm NAME`", "a context cannot be renamed"},
		{"", "stat stats info status health healthcheck check test diagnose diag verify debug endpoint member members cluster-info operator", "`sscli doctor`", ""},
		{"", "latency rtt", "`sscli ping`", ""},
		{"", "benchmark perf stress", "`sscli bench`", ""},
		{"", "top", "`sscli watch KEY...`", ""},

		// The program
		{"", "server start broker emulator mock standalone agent daemon", "`sscli serve`", ""},
		{"", "redis", "`sscli gateway`", ""},
		{"", "repl console interactive prompt cli", "`sscli shell`", ""},
		{"", "run source script pipe", "`sscli batch FILE`", ""},
		{"", "time now clock date timestamp", "`sscli hlc now`", ""},
		{"", "decode parse", "`sscli hlc parse HLC`", ""},
		{"", "compare cmp", "`sscli hlc compare HLC HLC`", ""},
		{"hlc", "new time clock date generate gen", "`sscli hlc now`", ""},
		{"hlc", "show decode format explain print", "`sscli hlc parse HLC`", ""},
		{"hlc", "cmp diff order sort before after", "`sscli hlc compare HLC HLC`", ""},
		{"", "manual docs doc usage commands", "`sscli help`", ""},
		{"", "about", "`sscli version`", ""},
		{"", "completions autocomplete complete", "`sscli completion`", ""},
		{"completion", "pwsh ps ps1", "`sscli completion powershell`", ""},
		{"completion", "sh ksh mksh csh tcsh ash dash elvish nu nushell xonsh cmd", "", "there is completion for bash, zsh, fish and powershell"},

		// consul kv
		{"", "kv", "`sscli get KEY`", ""},
		{"kv", "get", "`sscli get KEY...`", ""},
		{"kv", "put set", "`sscli set KEY VALUE`", ""},
		{"kv", "delete del rm", "`sscli del KEY...`", ""},
		{"kv", "list ls keys", "`sscli scan [PATTERN]`", ""},
		{"kv", "export", "`sscli export`", ""},
		{"kv", "import", "`sscli import FILE`", ""},
	}
}

// Flag returns the flag of sscli that does the same as another tool's flag, or nil if there is none or
// the command does not have it.
func Flag(name string, has func(flag string) bool) Hint {
	for _, f := range []struct{ words, flag, hint string }{
		{"pass passwd password pw secret", "password-file", "`--password-file FILE`, or `--askpass` to type it"},
		{"user login", "username", "`--username NAME`"},
		{"endpoint endpoints server servers address addr broker uri", "url", "`--url URL`"},
		{"ca cacert cafile capath certificate-authority trusted-ca-file", "ca-file", "`--ca-file FILE`"},
		{"cert certfile client-certificate", "cert-file", "`--cert-file FILE`"},
		{"key keyfile client-key", "key-file", "`--key-file FILE`"},
		{"token", "sat-file", "`--sat-file FILE`"},
		{"insecure insecure-skip-tls-verify skip-verify insecure-skip-verify", "tls-insecure", "`--tls-insecure`"},
		{"sni servername server-name", "tls-server-name", "`--tls-server-name NAME`"},
		{"id clientid", "client-id", "`--client-id ID`"},
		{"json", "output", "`--output json`"},
		{"raw", "output", "`--output raw`"},
		{"format write-out", "output", "`--output FORM`"},
		{"debug", "trace", "`--trace`"},
		{"silent", "quiet", "`--quiet`"},
		{"command-timeout dial-timeout request-timeout", "timeout", "`--timeout DURATION`"},
		{"ex expire expiry lease", "ttl", "`--ttl DURATION`"},
		{"force", "force-fence", "`--force-fence`"},
	} {
		if slices.Contains(strings.Fields(f.words), strings.ToLower(name)) && has(f.flag) {
			return Try(f.hint)
		}
	}
	return nil
}

// FlagMeaning returns what a user may have meant by a flag that the command does not have. command is
// the path of the command. flag has no dashes. operands fill the places of the hint.
func FlagMeaning(command, flag string, operands []string) Meaning {
	const steal = "`sscli lock break NAME` shows the holder and asks"
	return lookUp([]habit{
		{"get", "prefix recurse from-key", "`sscli scan PREFIX* --long`", ""},
		{"get", "match pattern all keys-only A", "`sscli scan PATTERN --long`", ""},
		{"get", "watch follow w F", "`sscli watch KEY...`", ""},
		{"get", "wait", "`sscli watch KEY --until set`", ""},
		{"scan", "prefix", "`sscli scan PREFIX*`", ""},
		{"scan", "match pattern all keys-only A", "`sscli scan [PATTERN]`", ""},
		{"scan", "watch follow w F", "`sscli watch --match PATTERN`", ""},
		{"del", "prefix recurse recursive r R", "`sscli del --match PREFIX*`", ""},
		{"del", "pattern all A", "`sscli del --match PATTERN`", ""},
		{"watch", "prefix recursive r R", "`sscli watch --match PREFIX*`", ""},
		{"watch", "pattern all A", "`sscli watch --match PATTERN`", ""},
		{"export", "prefix", "`sscli export PREFIX*`", ""},
		{"export", "match pattern", "`sscli export PATTERN`", ""},
		{"top", "prefix", "`sscli top PREFIX*`", ""},
		{"top", "match pattern", "`sscli top PATTERN`", ""},
		{"lock list", "prefix", "`sscli lock list PREFIX*`", ""},
		{"lock list", "match pattern all A", "`sscli lock list [PATTERN]`", ""},
		{"lock list", "watch follow w f", "`sscli lock trace NAME`", ""},
		{"lock status", "watch follow w f", "`sscli lock trace NAME`", ""},
		{"gateway", "redis", "`sscli gateway --listen HOST:PORT`", ""},
		{"lock acquire", "force f", steal, ""},
		{"lock release", "force f", steal, ""},
		{"lock run", "force f", steal, ""},
		{"apply", "f filename", "`sscli apply FILE`", ""},
		{"diff", "f filename", "`sscli diff FILE`", ""},
		{"ping", "c count", "`sscli ping -n COUNT`", ""},
		{"watch", "json", "`sscli watch KEY --field PATH`", ""},
		{"check", "field", "`sscli check KEY --json PATH`", ""},
		{"check", "w warning c critical", "`sscli check KEY --max-age 5m,10m`: the first limit warns, the second is critical", ""},
		{"set", "if-not-exists if-absent create", "`sscli set KEY VALUE --nx`", ""},
	}, command, flag, operands)
}
