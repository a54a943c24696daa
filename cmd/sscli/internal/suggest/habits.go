package suggest

import (
	"slices"
	"strings"
)

// A Meaning is what a user may have meant by words that do not name a command.
type Meaning struct {
	Hint string // a command line that begins with sscli, perhaps with a remark; empty = none
	Why  string // why the state store cannot do what the user meant; empty = it can
}

// Command returns what users of other tools mean by words, or the zero Meaning if it does not know the
// words. words must not be empty. under is the path of the command after which the user typed the
// words, such as "lock", or "" for sscli itself. exists reports whether sscli has a command with
// this path. The hint contains keys, names and patterns from the words, but no values.
func Command(under string, words []string, exists func(path string) bool) Meaning {
	word := strings.ToLower(words[0])
	if len(words) > 1 {
		if m := Command(strings.TrimSpace(under+" "+word), words[1:], exists); m != (Meaning{}) {
			return m
		}
	}
	return meaning(under, word, words[1:], exists)
}

// Other is like [Command], for words whose first word is an operand, not a possible name of a command.
func Other(under string, words []string, exists func(path string) bool) Meaning {
	return meaning(under, anyWord, words, exists)
}

// anyWord marks a row for [Other]: it applies to every word.
const anyWord = "*"

// meaning returns the Meaning of a word from the table of habits.
func meaning(under, word string, operands []string, exists func(path string) bool) Meaning {
	return lookUp(habits(), under, word, operands, exists)
}

// lookUp returns the Meaning of a word from a table. It skips rows that yield neither a hint nor a
// reason.
func lookUp(table []habit, under, word string, operands []string, exists func(path string) bool) Meaning {
	for _, h := range table {
		if h.under != under || !slices.Contains(strings.Fields(h.typed), word) {
			continue
		}
		m := Meaning{Why: h.why}
		for means := range strings.SplitSeq(h.means, " | ") {
			if means != "" && exists(path(means)) {
				m.Hint = "sscli " + fill(means, operands)
				break
			}
		}
		if m != (Meaning{}) {
			return m
		}
	}
	return Meaning{}
}

// path returns the path of the command with which a hint begins: the leading words in lower case.
func path(hint string) string {
	var names []string
	for w := range strings.FieldsSeq(hint) {
		name := strings.TrimRight(w, ",:;")
		if strings.ContainsFunc(name, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') }) || name[0] == '-' {
			break
		}
		names = append(names, name)
		if name != w {
			break
		}
	}
	return strings.Join(names, " ")
}

// fill replaces the placeholders in a hint with operands: KEY, NAME, PATTERN and [PATTERN] with the
// first operand, PREFIX* with the first operand and a *, and KEY... with all operands. If there is
// no operand, it removes [PATTERN].
func fill(hint string, operands []string) string {
	var out []string
	for w := range strings.FieldsSeq(hint) {
		name := strings.TrimRight(w, ",:;")
		end := w[len(name):]
		text := name
		switch name {
		case "KEY", "NAME", "PATTERN", "[PATTERN]":
			if len(operands) > 0 {
				text = orPlaceholder(operands[:1], strings.Trim(name, "[]"))
			} else if name[0] == '[' && len(out) > 0 {
				out[len(out)-1] += end
				continue
			}
		case "PREFIX*":
			text = "'PREFIX*'"
			if len(operands) > 0 {
				text = orPlaceholder([]string{strings.TrimSuffix(operands[0], "*") + "*"}, text)
			}
		case "KEY...":
			if len(operands) > 0 {
				text = orPlaceholder(operands, name)
			}
		}
		out = append(out, text+end)
	}
	return strings.Join(out, " ")
}

// orPlaceholder returns operands as the user types them, or the placeholder if [Quoted] cannot quote
// one of them.
func orPlaceholder(operands []string, placeholder string) string {
	words := make([]string, len(operands))
	for i, o := range operands {
		var ok bool
		if words[i], ok = Quoted(o); !ok {
			return placeholder
		}
	}
	return strings.Join(words, " ")
}

// Quoted returns a word with the quotes that it needs, in a form that is valid in the user's shell and
// in sscli's shell. ok is false if there is no such form, or if the word has a character that is not
// printable ASCII.
func Quoted(word string) (typed string, ok bool) {
	plain := word != "" && word[0] != '-'
	for i := range len(word) {
		c := word[i]
		if c < ' ' || c > '~' || c == '\'' {
			return "", false
		}
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-/:@%+,", c) >= 0) {
			plain = false
		}
	}
	if plain {
		return word, true
	}
	return "'" + word + "'", word == "" || word[0] != '-'
}

// A habit maps words that users of another tool type to the command of sscli that does the same.
type habit struct {
	under string // the path of the parent command; empty for the root
	typed string // the words of other tools, separated by spaces
	means string // commands of sscli, separated by |; the first one that exists becomes the hint
	why   string // why the state store cannot do what the words mean; empty = it can
}

// habits returns the table of habits, for users of redis-cli, etcdctl, kubectl, consul and the
// Mosquitto tools. A word that is a command of sscli needs no row.
func habits() []habit {
	const (
		expiry     = "the protocol sets an expiry only together with a value"
		inPlace    = "the state store cannot change a value in place"
		atOnce     = "the state store has no transactions"
		guarded    = "lock run LOCK -- CMD..., with get and set in CMD"
		onlyBytes  = "every value is plain bytes"
		oneStore   = "there is one state store, without databases"
		connection = "help connection"
	)
	return []habit{
		// Keys
		{"", "ls list dir find search dbsize", "scan [PATTERN]", ""},
		{"", "exists has contains", "get KEY --version-only: the exit code is 1 if the key is missing", ""},
		{"", "cat read show print fetch value mget getex getset getdel", "get KEY...", ""},
		{"", "strlen len size", "get KEY -o 'template={{len .value}}'", ""},
		{"", "add create new write store save update replace apply patch mset msetnx", "set KEY VALUE", ""},
		{"", "setnx", "set KEY VALUE --nx", ""},
		{"", "setex psetex", "set KEY VALUE --ttl 10m", ""},
		{"", "remove unset unlink erase drop destroy purge", "del KEY...", ""},
		{"", "cad delex delif", "vdel KEY VALUE", ""},
		{"", "edit vi vim nano modify change", "edit KEY | set KEY VALUE", ""},
		{"", "explain describe inspect", "explain KEY | get KEY", ""},
		{"", "subscribe psubscribe sub listen notify notifications tail follow stream observe monitor events log logs poll", "watch KEY...", ""},
		{"", "wait", "watch KEY --until set", ""},
		{"", "publish pub", "set KEY VALUE", "the state store has keys and no channels"},
		{"", "ttl pttl expiretime pexpiretime", "lock status KEY, if KEY is a lock", "the protocol cannot tell a key's expiry"},
		{"", "expire pexpire expireat pexpireat touch", "set KEY VALUE --ttl 10m", expiry},
		{"", "persist", "set KEY VALUE, without --ttl", expiry},
		{"", "incr decr incrby decrby incrbyfloat append setrange setbit cas", guarded, inPlace},
		{"", "multi exec discard unwatch txn transaction eval evalsha fcall", guarded, atOnce},
		{"", "rename renamenx mv move cp copy", "get KEY, then sscli set NEW VALUE, then sscli del KEY", "the state store cannot rename a key"},
		{"", "flushall flushdb truncate wipe", "scan, then sscli del KEY...", "the state store cannot delete all keys at once"},
		{"", "compaction defrag alarm downgrade maint", "", "the broker looks after its store by itself"},
		{"", "select swapdb", "context list", oneStore},
		{"", "db databases namespace namespaces", "context list", oneStore},
		{"", "type", "get KEY", onlyBytes},
		{"", "hget hset hgetall hdel hmget hmset hkeys hvals hlen hscan hexists hincrby lpush rpush lpop rpop lset " +
			"lrange lindex linsert lrem ltrim llen sadd srem smembers sismember scard sscan spop zadd zrange zrank zrem zscan zscore zcard " +
			"xadd xread xrange xlen json.get json.set", "", onlyBytes + ", there are no hashes, lists, sets or streams"},

		// Copies of the store
		{"", "export backup dump snapshot bgsave", "export | get KEY... -o json", ""},
		{"", "import restore load", "import FILE | batch --load FILE", ""},
		{"snapshot", "save", "export | get KEY... -o json", ""},
		{"snapshot", "restore", "import FILE | batch --load FILE", ""},

		// Locks
		{"", "locks", "lock list | lock status NAME", ""},
		{"", "acquire take", "lock acquire NAME", ""},
		{"", "release unlock", "lock release NAME", ""},
		{"", "renew extend refresh keepalive keep-alive", "lock renew NAME", ""},
		{"", "hold elect election leader", "lock hold NAME", ""},
		{"", "mutex semaphore flock", "lock run NAME -- CMD...", ""},
		{"", "who owner holder", "lock status NAME", ""},
		{"", "lease leases", "lock --help", ""},
		{"lease", "grant", "set --help", ""},
		{"lease", "revoke", "lock release NAME", ""},
		{"lease", "keep-alive", "lock renew NAME", ""},
		{"lease", "list", "lock list | lock status NAME", ""},
		{"lease", "timetolive", "lock status NAME", "the protocol cannot tell a key's expiry"},
		{"", "session sessions", "lock list | lock status NAME", ""},
		{"lock", "ls", "lock list", ""},
		{"lock", "show get info who owner holder check inspect describe state test", "lock status NAME", ""},
		{"lock", "take obtain grab create new set add lock nx", "lock acquire NAME", ""},
		{"lock", "try trylock", "lock acquire NAME --try", ""},
		{"lock", "unlock free delete del remove rm drop", "lock release NAME", ""},
		{"lock", "break steal force kill revoke", "lock status NAME shows the holder; sscli del NAME takes the lock from it", ""},
		{"lock", "extend refresh keepalive keep-alive touch", "lock renew NAME", ""},
		{"lock", "exec with do guard start wrap", "lock run NAME -- CMD...", ""},
		{"lock", "keep wait maintain", "lock hold NAME", ""},
		{"lock", anyWord, "lock run NAME -- CMD..., or sscli lock hold NAME", ""},
		{"lock", "trace watch log logs history events monitor follow", "lock trace NAME | watch NAME", ""},

		// Help
		{"help", "locks locking lease leases mutex fencing fence token tokens", "help lock", ""},

		// The connection and the broker
		{"", "auth login logout signin acl user users role roles connect credentials password", connection, ""},
		{"", "config ctx contexts profile profiles connection connections target targets cluster clusters", "context list", ""},
		{"", "configure setup init", "context set NAME --url URL", ""},
		{"", "use switch", "context use NAME", ""},
		{"", "whoami", "context show", ""},
		{"", "env", "help environment", ""},
		{"config", "get-contexts get-clusters get-users list ls contexts", "context list", ""},
		{"config", "use-context use", "context use NAME", ""},
		{"config", "current-context view show get", "context show", ""},
		{"config", "set-context set-cluster set-credentials set", "context set NAME", ""},
		{"config", "delete-context unset rm", "context rm NAME", ""},
		{"context", "ls contexts get-contexts all", "context list", ""},
		{"context", "delete del remove forget delete-context", "context rm NAME", ""},
		{"context", "current current-context get view describe print which cat", "context show", ""},
		{"context", "switch select choose default activate use-context", "context use NAME", ""},
		{"context", "add create new put save set-context", "context set NAME --url URL", ""},
		{"context", "edit update modify change", "context set NAME, with the flags to change", ""},
		{"context", "unset", "context set NAME --unset FLAG", ""},
		{"context", "rename mv move copy cp", "context set NEW, with the same flags, then sscli context rm NAME", "a context cannot be renamed"},
		{"", "stat stats info status health healthcheck check test diagnose diag verify debug endpoint member members cluster-info operator", "doctor", ""},
		{"", "latency rtt", "ping", ""},
		{"", "benchmark perf stress", "bench", ""},
		{"", "top", "watch KEY...", ""},

		// The program
		{"", "server start broker emulator mock standalone agent daemon", "serve", ""},
		{"", "redis", "gateway", ""},
		{"", "repl console interactive prompt cli", "shell", ""},
		{"", "run source script pipe", "batch FILE", ""},
		{"", "time now clock date timestamp", "hlc now", ""},
		{"", "decode parse", "hlc parse HLC", ""},
		{"", "compare cmp", "hlc compare HLC HLC", ""},
		{"hlc", "new time clock date generate gen", "hlc now", ""},
		{"hlc", "show decode format explain print", "hlc parse HLC", ""},
		{"hlc", "cmp diff order sort before after", "hlc compare HLC HLC", ""},
		{"", "manual docs doc usage commands", "help", ""},
		{"", "about", "version", ""},
		{"", "completions autocomplete complete", "completion", ""},
		{"completion", "pwsh ps ps1", "completion powershell", ""},
		{"completion", "sh ksh mksh csh tcsh ash dash elvish nu nushell xonsh cmd", "", "there is completion for bash, zsh, fish and powershell"},

		// consul kv
		{"", "kv", "get KEY", ""},
		{"kv", "get", "get KEY...", ""},
		{"kv", "put set", "set KEY VALUE", ""},
		{"kv", "delete del rm", "del KEY...", ""},
		{"kv", "list ls keys", "scan [PATTERN]", ""},
		{"kv", "export", "export | get KEY... -o json", ""},
		{"kv", "import", "import FILE | batch --load FILE", ""},
	}
}

// Flag returns the flag of sscli that does the same as another tool's flag, or "" if there is none.
// The flag has no leading dashes. A placeholder or a remark may follow it.
func Flag(name string) string {
	for _, f := range [][2]string{
		{"pass passwd password pw secret", "password-file FILE, or --askpass to type it"},
		{"user login", "username NAME"},
		{"endpoint endpoints server servers address addr broker uri", "url URL"},
		{"ca cacert cafile capath certificate-authority trusted-ca-file", "ca-file FILE"},
		{"cert certfile client-certificate", "cert-file FILE"},
		{"key keyfile client-key", "key-file FILE"},
		{"token", "sat-file FILE"},
		{"insecure insecure-skip-tls-verify skip-verify insecure-skip-verify", "tls-insecure"},
		{"sni servername server-name", "tls-server-name NAME"},
		{"id clientid", "client-id ID"},
		{"json", "output json"},
		{"raw", "output raw"},
		{"format write-out", "output FORM"},
		{"debug", "trace"},
		{"silent", "quiet"},
		{"command-timeout dial-timeout request-timeout", "timeout DURATION"},
		{"ex expire expiry lease", "ttl DURATION"},
		{"force", "force-fence"},
	} {
		if slices.Contains(strings.Fields(f[0]), strings.ToLower(name)) {
			return f[1]
		}
	}
	return ""
}

// FlagMeaning returns what a user may have meant by a flag that the command does not have. command is
// the path of the command. flag has no dashes. operands replace the placeholders in the hint. exists is
// as in [Command].
func FlagMeaning(command, flag string, operands []string, exists func(path string) bool) Meaning {
	const steal = "lock status NAME shows the holder; sscli del NAME takes the lock from it"
	return lookUp([]habit{
		{"get", "prefix recurse from-key", "scan PREFIX* --long", ""},
		{"get", "match pattern all keys-only A", "scan PATTERN --long", ""},
		{"get", "watch follow w F", "watch KEY...", ""},
		{"get", "wait", "watch KEY --until set", ""},
		{"scan", "prefix", "scan PREFIX*", ""},
		{"scan", "match pattern all keys-only A", "scan [PATTERN]", ""},
		{"scan", "watch follow w F", "watch --match PATTERN", ""},
		{"del", "prefix recurse recursive r R", "del --match PREFIX*", ""},
		{"del", "pattern all A", "del --match PATTERN", ""},
		{"watch", "prefix recursive r R", "watch --match PREFIX*", ""},
		{"watch", "pattern all A", "watch --match PATTERN", ""},
		{"export", "prefix", "export PREFIX*", ""},
		{"export", "match pattern", "export PATTERN", ""},
		{"top", "prefix", "top PREFIX*", ""},
		{"top", "match pattern", "top PATTERN", ""},
		{"lock list", "prefix", "lock list PREFIX*", ""},
		{"lock list", "match pattern all A", "lock list [PATTERN]", ""},
		{"lock list", "watch follow w f", "lock trace NAME", ""},
		{"lock status", "watch follow w f", "lock trace NAME", ""},
		{"lock acquire", "force f", steal, ""},
		{"lock release", "force f", steal, ""},
		{"lock run", "force f", steal, ""},
		{"set", "if-not-exists if-absent create", "set KEY VALUE --nx", ""},
	}, command, flag, operands, exists)
}
