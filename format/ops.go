package format

import "strings"

// An Op describes one kind of object that the json output prints. Templates use the same field
// names.
type Op struct {
	Name   string // the value of the field op
	By     string // the command that prints the object, or a short description such as "an error"
	Fields string // the other fields that the object can have, separated by spaces
	Stderr bool   // the object goes to standard error, and templates do not format it
}

// Ops returns every kind of object. TestOps compares it with the fields that the results print.
func Ops() []Op {
	return []Op{
		{Name: "get", By: "get", Fields: "key found value version rtt_ms"},
		{Name: "set", By: "set", Fields: "key applied reason version rtt_ms"},
		{Name: "del", By: "del", Fields: "key deleted count reason version rtt_ms"},
		{Name: "vdel", By: "vdel", Fields: "key deleted count reason version rtt_ms"},
		{Name: "scan", By: "scan", Fields: "key size version preview cut"},
		{Name: "export", By: "export", Fields: "keys missing refused bytes elapsed_ms rate written_meanwhile deleted_meanwhile changed_keys", Stderr: true},
		{Name: "import", By: "import; with --dry-run for each key the first three", Fields: "key action version lines applied exist refused unknown skipped elapsed_ms rate resume_line ahead newer"},
		{Name: "import", By: "import --dry-run", Fields: "lines applied exist refused unknown skipped elapsed_ms rate resume_line ahead newer dry_run", Stderr: true},
		{Name: "diff", By: "diff", Fields: "change key old new old_version version fields"},
		{Name: "diff_summary", By: "diff", Fields: "equal added removed changed refused elapsed_ms written_meanwhile deleted_meanwhile changed_keys", Stderr: true},
		{Name: "apply", By: "apply", Fields: "key action version time"},
		{Name: "apply_summary", By: "apply", Fields: "created changed unchanged deleted conflicts refused unknown elapsed_ms dry_run", Stderr: true},
		{Name: "edit_conflict", By: "edit", Fields: "key old new fields", Stderr: true},
		{Name: "dataset_plan", By: "dataset load --dry-run", Fields: "key action records bytes max_packet columns more_columns on equal added removed changed reordered"},
		{Name: "dataset_plan", By: "dataset load", Fields: "key action records bytes max_packet columns more_columns on equal added removed changed reordered", Stderr: true},
		{Name: "dataset_record", By: "dataset show", Fields: "key line record"},
		{Name: "dataset_change", By: "dataset diff", Fields: "key change old_line line old new fields"},
		{Name: "dataset_summary", By: "dataset diff", Fields: "key on equal added removed changed reordered", Stderr: true},
		{Name: "dataset_match", By: "dataset match", Fields: "key message found line record"},
		{Name: "dataset_finding", By: "dataset check", Fields: "file line message hint"},
		{Name: "policy_finding", By: "policy check", Fields: "id file line severity message hint"},
		{Name: "policy_can", By: "policy can", Fields: "user client attributes method key topic allowed where entry lacks needs assumes"},
		{Name: "policy_table", By: "policy table", Fields: "who method on type where never"},
		{Name: "policy_diff", By: "policy diff", Fields: "change user client attributes method key topic entry where"},
		{Name: "policy_test", By: "policy test", Fields: "file line who question expected step where reason"},
		{Name: "policy_who", By: "policy who", Fields: "method on who if where entry lacks"},
		{Name: "policy_suggest", By: "policy suggest", Fields: "resource notes"},
		{Name: "call", By: "call", Fields: "request reply version rtt_ms"},
		{Name: "initial", By: "watch", Fields: "key found value version time"},
		{Name: "found", By: "watch --match", Fields: "key found value version continuity from to time"},
		{Name: "set", By: "watch", Fields: "key value version time"},
		{Name: "delete", By: "watch", Fields: "key version time"},
		{Name: "other", By: "watch", Fields: "key word value version time"},
		{Name: "gap", By: "watch", Fields: "key version continuity from to outage_ms time"},
		{Name: "resync", By: "watch", Fields: "key found value version continuity time"},
		{Name: "unaudited", By: "watch", Fields: "message time"},
		{Name: "error", By: "watch", Fields: "key version message time"},
		{Name: "ready", By: "watch", Fields: "keys time"},
		{Name: "end", By: "watch", Fields: "reason events time"},
		{Name: "lock_acquire", By: "lock acquire", Fields: "name holder token ttl_ms"},
		{Name: "lock_renew", By: "lock renew", Fields: "name holder token ttl_ms"},
		{Name: "lock_hold", By: "lock hold", Fields: "name holder token ttl_ms"},
		{Name: "lock_release", By: "lock release", Fields: "name holder"},
		{Name: "lock_break", By: "lock break", Fields: "name holder"},
		{Name: "lock_status", By: "lock status", Fields: "name held holder token age_ms age_by observed_ms renewals renewal_interval_ms"},
		{Name: "lock_list", By: "lock list", Fields: "name held holder value token age_ms age_by observed_ms renewals renewal_interval_ms"},
		{Name: "lock_trace", By: "lock trace", Fields: "what name key held holder before token held_ms free_ms at_least renewals renewal_interval_ms inferred why event word continuity from to time"},
		{Name: "lock_timeline", By: "lock trace --timeline", Fields: "from to locks guards"},
		{Name: "explain", By: "explain", Fields: "key found version lock held holder lock_token token token_to_version token_to_lock_token at_least asked verdict rule assumes_lock assumes_clock why hint"},
		{Name: "ping", By: "ping", Fields: "seq key rtt_ms note"},
		{Name: "ping_summary", By: "ping", Fields: "sent lost min_ms avg_ms p99_ms max_ms"},
		{Name: "check", By: "doctor, check", Fields: "check status message hint took_ms facts"},
		{Name: "check_summary", By: "doctor, check", Fields: "passed warned failed skipped"},
		{Name: "check_finding", By: "check --lint", Fields: "file line column message"},
		{Name: "bench", By: "bench", Fields: "verb count errors elapsed_ms per_second min_ms mean_ms p50_ms p90_ms p99_ms p99_9_ms max_ms"},
		{Name: "hlc_now", By: "hlc now", Fields: "version"},
		{Name: "hlc_parse", By: "hlc parse", Fields: "version"},
		{Name: "hlc_compare", By: "hlc compare", Fields: "a b order wall_difference_ms"},
		{Name: "serve", By: "serve", Fields: "url ca_file cert_file key_file sat_file"},
		{Name: "data_check", By: "serve --data-check", Fields: "file size keys bytes damages more_damages salvaged"},
		{Name: "forward", By: "forward", Fields: "url tls_server_name ca_file sat_file"},
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
		{Name: "batch", By: "batch", Fields: "lines applied no refused unknown skipped elapsed_ms rate resume_line ahead not_run more", Stderr: true},
		{Name: "time", By: "time", Fields: "elapsed_ms", Stderr: true},
		{Name: "request", By: "serve -v, gateway -v", Fields: "time port client user verb key keys access options fence outcome result cause rule version notified value clock took_ms topic request_bytes reply_bytes notified_clients", Stderr: true},
		{Name: "expire", By: "serve -v", Fields: "time key version notified", Stderr: true},
		{Name: "connect", By: "serve -vv", Fields: "time client user remote protocol", Stderr: true},
		{Name: "refuse", By: "serve -vv", Fields: "time client remote reason", Stderr: true},
		{Name: "disconnect", By: "serve -vv", Fields: "time client reason", Stderr: true},
		{Name: "say", By: "say", Fields: "text", Stderr: true},
		{Name: "aside", By: "shell", Fields: "text", Stderr: true},
	}
}

// objectParts returns the names of the members of the named field, separated by spaces. ok is false if
// the field is not an object. parts is empty if the members vary. The field version is an object,
// except in the result of the command version, where it is text.
func objectParts(name string) (parts string, ok bool) {
	switch name {
	case "version", "old_version", "token", "lock_token", "at_least", "a", "b":
		return "hlc wall_ms counter node time", true
	case "reply":
		return "", true
	}
	return "", false
}

// hasField reports whether any result that templates format can have the named field. The name may end
// in _b64: for a string that is not UTF-8, a template also receives a field in base64.
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
