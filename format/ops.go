package format

import "strings"

// An Op is a row of the table of what the output json prints. Templates use the same names.
type Op struct {
	Name   string // the value of the field op
	By     string // what prints it
	Fields string // the other fields that it can have, separated by blanks
	Stderr bool   // it goes to standard error, and templates do not apply to it
}

// Ops returns the table of all results. A result that is not here, or prints another field,
// fails TestOps.
func Ops() []Op {
	const value = "key found value version rtt_ms"
	return []Op{
		{Name: "get", By: "get", Fields: value},
		{Name: "set", By: "set", Fields: "key applied reason version rtt_ms"},
		{Name: "del", By: "del", Fields: "key deleted count reason version rtt_ms"},
		{Name: "vdel", By: "vdel", Fields: "key deleted count reason version rtt_ms"},
		{Name: "scan", By: "scan", Fields: "key size version preview cut"},
		{Name: "export", By: "export", Fields: "keys missing refused bytes elapsed_ms rate written_meanwhile deleted_meanwhile changed_keys", Stderr: true},
		{Name: "import", By: "import; with --dry-run for each key the first three", Fields: "key action version lines applied exist refused unknown skipped elapsed_ms rate resume_line ahead"},
		{Name: "import", By: "import --dry-run", Fields: "lines applied exist refused unknown skipped elapsed_ms rate resume_line ahead dry_run", Stderr: true},
		{Name: "diff", By: "diff", Fields: "change key old new old_version version fields"},
		{Name: "diff_summary", By: "diff", Fields: "equal added removed changed refused elapsed_ms written_meanwhile deleted_meanwhile changed_keys", Stderr: true},
		{Name: "edit_conflict", By: "edit", Fields: "key old new fields", Stderr: true},
		{Name: "call", By: "call", Fields: "request reply version rtt_ms"},
		{Name: "initial", By: "watch", Fields: "key found value version time"},
		{Name: "set", By: "watch", Fields: "key value version time"},
		{Name: "delete", By: "watch", Fields: "key version time"},
		{Name: "other", By: "watch", Fields: "key word value version time"},
		{Name: "gap", By: "watch", Fields: "key version continuity from to outage_ms time"},
		{Name: "resync", By: "watch", Fields: "key found value version continuity time"},
		{Name: "unaudited", By: "watch --audit", Fields: "message time"},
		{Name: "error", By: "watch", Fields: "key version message time"},
		{Name: "end", By: "watch", Fields: "reason events time"},
		{Name: "lock_acquire", By: "lock acquire", Fields: "name holder token ttl_ms"},
		{Name: "lock_renew", By: "lock renew", Fields: "name holder token ttl_ms"},
		{Name: "lock_hold", By: "lock hold", Fields: "name holder token ttl_ms"},
		{Name: "lock_release", By: "lock release", Fields: "name holder"},
		{Name: "lock_status", By: "lock status", Fields: "name held holder token age_ms age_by observed_ms renewals renewal_interval_ms"},
		{Name: "lock_list", By: "lock list", Fields: "name held holder token age_ms age_by observed_ms renewals renewal_interval_ms"},
		{Name: "lock_trace", By: "lock trace", Fields: "what name key held holder before token held_ms free_ms at_least renewals renewal_interval_ms inferred why event word continuity from to time"},
		{Name: "lock_timeline", By: "lock trace --timeline", Fields: "from to locks guards"},
		{Name: "explain", By: "explain", Fields: "key found version lock held holder lock_token token token_to_version token_to_lock_token at_least verdict rule assumes_lock why hint"},
		{Name: "ping", By: "ping", Fields: "seq key rtt_ms note"},
		{Name: "ping_summary", By: "ping", Fields: "sent lost min_ms avg_ms p99_ms max_ms"},
		{Name: "check", By: "doctor", Fields: "check status message hint took_ms facts"},
		{Name: "check_summary", By: "doctor", Fields: "passed warned failed skipped"},
		{Name: "bench", By: "bench", Fields: "verb count errors elapsed_ms per_second min_ms mean_ms p50_ms p90_ms p99_ms p99_9_ms max_ms"},
		{Name: "hlc_now", By: "hlc now", Fields: "version"},
		{Name: "hlc_parse", By: "hlc parse", Fields: "version"},
		{Name: "hlc_compare", By: "hlc compare", Fields: "a b order wall_difference_ms"},
		{Name: "serve", By: "serve", Fields: "url ca_file cert_file key_file sat_file"},
		{Name: "data_check", By: "serve --data-check", Fields: "file size keys bytes damages more_damages salvaged"},
		{Name: "gateway", By: "gateway", Fields: "url store"},
		{Name: "context_set", By: "context set", Fields: "name chosen protected broker"},
		{Name: "context_list", By: "context list", Fields: "name chosen protected broker"},
		{Name: "context_use", By: "context use", Fields: "name chosen protected broker"},
		{Name: "context_rm", By: "context rm", Fields: "name chosen protected broker"},
		{Name: "setting", By: "context show", Fields: "name value source file"},
		{Name: "version", By: "version", Fields: "version commit modified date go platform"},
		{Name: "error", By: "an error", Fields: "code kind outcome line message store_error hint", Stderr: true},
		{Name: "warning", By: "a warning", Fields: "time line message hint", Stderr: true},
		{Name: "notice", By: "what sscli waits for", Fields: "time line message", Stderr: true},
		{Name: "batch", By: "batch", Fields: "lines applied no refused unknown skipped elapsed_ms rate resume_line ahead", Stderr: true},
		{Name: "time", By: "time", Fields: "elapsed_ms", Stderr: true},
		{Name: "request", By: "serve -v, gateway -v", Fields: "time port client user verb key keys options fence outcome result cause version notified value clock took_ms topic request_bytes reply_bytes notified_clients", Stderr: true},
		{Name: "expire", By: "serve -v", Fields: "time key version notified", Stderr: true},
		{Name: "connect", By: "serve -vv", Fields: "time client user remote protocol", Stderr: true},
		{Name: "refuse", By: "serve -vv", Fields: "time client remote reason", Stderr: true},
		{Name: "disconnect", By: "serve -vv", Fields: "time client reason", Stderr: true},
		{Name: "say", By: "say", Fields: "text", Stderr: true},
		{Name: "aside", By: "shell", Fields: "text", Stderr: true},
	}
}

// Fields returns the meaning of each field of Ops.
func Fields() [][2]string {
	return [][2]string{
		{"action", "of import --dry-run: `create`, `replace`, `same`, `exists` or `skip`"},
		{"added, removed, changed, equal, change", "of diff: how many keys; and what is the case with one"},
		{"a, b", "the versions that were compared"},
		{"age_ms, age_by", "the time since the token was issued; `notification`: since it was seen, `local_clock`: by the token's time"},
		{"ahead", "of a batch that ended early: ranges of later lines that have run"},
		{"applied", "whether the key was set; of a batch, how many lines were done with yes"},
		{"avg_ms, min_ms, max_ms, mean_ms, p50_ms, p90_ms, p99_ms, p99_9_ms", "latencies: mean, smallest, largest, percentiles"},
		{"broker, chosen, protected", "of a context: its URL, whether it is the chosen one, whether it asks before writes"},
		{"bytes, size, keys", "of a data file: bytes of keys and values, bytes of the file, number of keys"},
		{"ca_file, cert_file, key_file, sat_file", "files for clients of the server"},
		{"changed_keys, written_meanwhile, deleted_meanwhile", "the first keys that other clients changed during the reading, and how many they wrote and deleted"},
		{"check, status, facts", "the step, `pass`, `warn`, `fail` or `skip`, and a list of `name`, `value` and `source`"},
		{"client, user, remote, protocol, port", "of a client of the server: its id, its name, its address, its version of MQTT; `redis` for the Redis port"},
		{"clock", "the time stamp of a request"},
		{"code, kind, outcome, store_error", "of an error: the exit code, [the kind](troubleshooting.md#every-kind-of-error), `unknown` for a write that may have been applied, the store's text"},
		{"commit, modified, date, go, platform", "of the program: the commit, whether files differed from it, and how it was built"},
		{"continuity", "whether events were missed: `proven` (no), `lost` or `unknown`"},
		{"count", "how many keys were deleted; of bench, how many replies came"},
		{"cut", "`true` if the value is longer than its preview"},
		{"damages, more_damages, salvaged", "of a data file: what is damaged, how many more damages there are, the file with what is readable"},
		{"deleted", "whether the key was deleted"},
		{"dry_run", "`true`: nothing was written"},
		{"elapsed_ms, took_ms", "how long it took"},
		{"errors", "how many requests had no reply or an error"},
		{"events", "how many changes were printed"},
		{"file", "the file of contexts or data"},
		{"exist, missing", "how many keys exist already, and how many do not exist"},
		{"fields", "for JSON values the fields that differ, each with `path`, `old` and `new` as JSON"},
		{"found", "whether the key exists"},
		{"from, to, outage_ms", "when the watch was interrupted; of a timeline, when it begins and ends"},
		{"inferred, event, what, before", "of lock trace: whether the line follows from more than the notification, the event of the watch, what happened, and the holder before"},
		{"held_ms, free_ms", "of lock trace: how long the lock was held or free until then; at least, if `at_least` is true"},
		{"locks, guards", "of a timeline: for each lock the holders and the times when they held it, for each key its writes"},
		{"hint", "what to try next"},
		{"key, value", "bytes"},
		{"line", "the line of a batch, from 1"},
		{"lines, no, refused, unknown, skipped, rate, resume_line", "of a batch: how many lines ran, and with which outcome; lines per second; the line to continue from"},
		{"message, text, note", "words for people"},
		{"name, holder, held, ttl_ms", "of a lock: its key, its holder, whether it is held, its time to live"},
		{"observed_ms, renewals, renewal_interval_ms", "how long the lock was watched, the renewals that were seen, and the time between them"},
		{"notified, notified_clients", "how many clients were notified, and which"},
		{"old, new, old_version", "a value before and after, and the version of the one before"},
		{"options, fence, topic, request_bytes, reply_bytes", "of a request: its options, its fencing token, its topic, and the sizes"},
		{"order, wall_difference_ms", "-1, 0 or 1, and the difference of the wall clocks"},
		{"passed, warned, failed", "how many steps ended so"},
		{"per_second", "replies per second"},
		{"preview", "the first 64 bytes of a value"},
		{"result, cause", "what the store replied, and why not otherwise"},
		{"reason", "why the request was not applied, or why the watch ended, in one word"},
		{"request, reply", "the words that were sent, and what the store replied: text, a number, `null` or a list"},
		{"rtt_ms", "time from sending the request to its reply"},
		{"sent, lost, seq", "how many requests were sent, how many had no reply, and the number of one"},
		{"source", "where a setting comes from"},
		{"store, url", "the broker of a gateway, and the address to connect to"},
		{"time", "when sscli saw the event; of a warning or a notice, when the broker went away or answered again"},
		{"lock, lock_token, at_least, token_to_version, token_to_lock_token, verdict, rule, assumes_lock, why", "of explain: the lock and its token, a version that the fence has at least, how the token compares with the key's version and with the lock's (`older`, `equal`, `newer`), what becomes of a write and by which rule, whether this holds only if every write of the key carries the newest token of the lock, and the reason in words"},
		{"token", "the fencing token of a lock; it has the parts of a version"},
		{"verb", "the command that was measured, or `all`"},
		{"version", "`hlc`: as the store writes it; `wall_ms`, `counter`, `node`: its parts; `time`: its wall clock. Of the program, a text"},
		{"word", "the store's word for a change that sscli does not know"},
	}
}

// objectParts returns the names in a field that is an object; ok is false if it is none. They
// are empty if they are not the same each time. The result of `version` has a text of the name
// version.
func objectParts(name string) (parts string, ok bool) {
	switch name {
	case "version", "old_version", "token", "lock_token", "at_least", "a", "b":
		return "hlc wall_ms counter node time", true
	case "reply":
		return "", true
	}
	return "", false
}

// hasField reports whether a result that templates apply to can have a field. Bytes that are not
// UTF-8 are in a field whose name ends in _b64 too.
func hasField(name string) bool {
	if name == "op" {
		return true
	}
	for _, op := range Ops() {
		if op.Stderr {
			continue
		}
		for f := range strings.FieldsSeq(op.Fields) {
			if f == name || f+"_b64" == name {
				return true
			}
		}
	}
	return false
}
