package format

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/observe"
	"github.com/sscli/sscli/internal/wire"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// version returns a version whose text has no padding.
func version(wall int64, counter uint64, node string) Version {
	v, err := wire.ParseVersion(fmt.Sprintf("%d:%d:%s", wall, counter, node))
	if err != nil {
		panic(err)
	}
	return v
}

func stored() Version { return version(1696374425000, 1, "StateStore") }

// now is 3m12s after stored.
func now() time.Time { return time.UnixMilli(1696374425000).Add(3*time.Minute + 12*time.Second) }

func render(t testing.TB, o Options, results ...Result) string {
	t.Helper()
	o.Now = now
	var out bytes.Buffer
	p, err := New(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if err := p.Print(r); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// samples returns results of every type, by the name of their golden file.
func samples() map[string][]Result {
	const rtt = 1840 * time.Microsecond
	const hostile = "\x1b[2J\u202e\u200b\xff\"\\\n<&>"
	evil := version(1696374425000, 7, "node\x1b]0;\u2028")
	return map[string][]Result{
		"scan": {
			Key{Key: "setpoint"},
			Key{Key: hostile},
		},
		"scan_long": {
			NewLongKey("setpoint", []byte("21.5"), stored()),
			NewLongKey(hostile, []byte(hostile), evil),
			NewLongKey("long", []byte(strings.Repeat("é", 40)), Version{}),
			NewLongKey("bytes", bytes.Repeat([]byte{0, 0xff}, 600), Version{}),
		},
		"export": {
			ExportSummary{Keys: 1, Bytes: 1, Elapsed: time.Second},
			ExportSummary{Keys: 5000, Bytes: 123456, Missing: 2, Refused: 1, Elapsed: 2 * time.Second,
				Meanwhile: Meanwhile{Written: 5, Deleted: 1, Changed: []string{"a", "b c", hostile, "d", "e"}}},
			ExportSummary{Meanwhile: Meanwhile{Deleted: 1, Changed: []string{"a"}}},
		},
		"import": {
			ImportSummary{Batch: BatchSummary{Applied: 1, Elapsed: time.Second}},
			ImportSummary{Batch: BatchSummary{Applied: 2, No: 3, Refused: 1, Unknown: 1, Skipped: 4, Newer: 1, Elapsed: time.Second, Resume: 7, Ahead: []LineRange{{8, 9}}}},
			DryRunSummary{Batch: BatchSummary{Applied: 2, No: 3, Skipped: 4, Newer: 2, Resume: 7, Ahead: []LineRange{{8, 9}}, Elapsed: time.Second}},
			ImportPlan{Key: "a", Action: "create", Missing: true},
			ImportPlan{Key: "b", Action: "same"},
			ImportPlan{Key: hostile, Action: "replace", Version: evil},
		},
		"apply": {
			Apply{Key: "a", Action: "created", Version: stored()},
			Apply{Key: hostile, Action: "unchanged", Version: evil, Time: time.UnixMilli(1696374425000)},
			Apply{Key: "b", Action: "delete"},
			ApplySummary{Created: 1, Unchanged: 2, Elapsed: time.Second},
			ApplySummary{Changed: 1, Deleted: 2, Conflicts: 3, Refused: 4, Unknown: 5, Elapsed: time.Second},
			ApplySummary{Created: 1, Deleted: 2, DryRun: true},
		},
		"diff": {
			Difference{Change: "added", Key: "a", New: []byte("1"), NewVersion: stored()},
			Difference{Change: "removed", Key: hostile, Old: []byte{}, OldVersion: evil},
			Difference{Change: "changed", Key: "b", Old: []byte(hostile), New: []byte("2"), OldVersion: Version{}, NewVersion: stored()},
			Difference{Change: "changed", Key: "cfg", Old: []byte(`{"a":1}`), New: []byte(`{"b":[1.0, "\u001b\u2028é<"]}`), Fields: []FieldChange{
				{Path: ".a", Old: "1"}, {Path: ".[\"\u001b\u2028\"]", New: `[1.0, "\u001b\u2028é<"]`}, {Path: ".x", Old: "null", New: `{"y": 1e3}`},
			}},
			DiffSummary{Equal: 1, Elapsed: time.Second},
			DiffSummary{Equal: 1, Added: 2, Removed: 3, Changed: 4, Refused: 5, Meanwhile: Meanwhile{Written: 1, Changed: []string{"a"}}},
		},
		"edit": {
			EditConflict{Key: "cfg", Theirs: []byte(`{"a":1}`), Ours: []byte(`{"a":2}`), Fields: []FieldChange{{Path: ".a", Old: "1", New: "2"}}},
			EditConflict{Key: hostile, Theirs: []byte("same\nold\nend\n"), Ours: []byte("same\n" + hostile + "end\n")},
			EditConflict{Key: "long", Theirs: []byte("a"), Ours: []byte(strings.Repeat("x\n", 30))},
		},
		"dataset": {
			DatasetRecord{Key: "sites", Line: 1, Record: []byte(`{"id":7,"name":"a"}`), Titles: []string{"id", "name"}, Cells: []DatasetCell{{"7", true}, {"a", false}}},
			DatasetRecord{Key: hostile, Line: 2, Record: []byte(`{"id":17,"name":"\u001b\u2028"}`), Titles: []string{"id", "name"}, Cells: []DatasetCell{{"17", true}, {hostile, false}}},
			DatasetMatch{Key: "sites", Line: 2, Record: []byte(`{"id":7.0}`)},
			DatasetMatch{Key: "sites", Message: 3},
			DatasetChange{Key: "sites", Change: "added", Line: 3, New: []byte(`{"id":7}`)},
			DatasetChange{Key: "sites", Change: "removed", OldLine: 2, Old: []byte(`{"id":7}`)},
			DatasetChange{Key: "sites", Change: "changed", OldLine: 2, Line: 3, Old: []byte(`{"id":7,"a":1}`), New: []byte(`{"id":7}`), Fields: []FieldChange{{Path: ".a", Old: "1"}}},
			DatasetChange{Key: "sites", Change: "changed", OldLine: 1, Line: 1, Old: []byte(`{"id":7,"a":1}`), New: []byte(`{"a":1,"id":7}`)},
			DatasetSummary{Key: "sites", DatasetCounts: DatasetCounts{Equal: 1, Added: 2}},
			DatasetSummary{Key: "sites", DatasetCounts: DatasetCounts{On: "id", Equal: 1, Removed: 2, Changed: 3, Reordered: true}},
			DatasetPlan{Key: "sites", Action: "create", Records: 2, Bytes: 40, MaxPacket: 268435455, Columns: []DatasetField{{"id", "number", 2}, {hostile, "null, string", 1}}, More: true},
			DatasetPlan{Key: "sites", Action: "replace", Records: 2, Bytes: 40, MaxPacket: 1000, Columns: []DatasetField{{"id", "number", 2}}},
			DatasetPlan{Key: "sites", Action: "replace", Records: 1, Bytes: 40, MaxPacket: 1000, Columns: []DatasetField{{"id", "number", 1}}, Counts: &DatasetCounts{On: "id", Added: 1}},
			DatasetPlanned{DatasetPlan{Key: "sites", Action: "unchanged", Records: 1, Bytes: 40, MaxPacket: 1000, Columns: []DatasetField{{"id", "number", 1}}, More: true, Counts: &DatasetCounts{On: "id", Equal: 1}}},
			Finding{By: "dataset", File: "flow.yaml", Line: 7, Message: `no dataset has the alias "permission"`, Hint: "write permissions"},
			Finding{By: "dataset", File: hostile, Line: 1, Message: "no key"},
		},
		"policy": {
			Finding{By: "check", File: "checks.yaml", Line: 3, Column: 12, Message: "unknown field"},
			Finding{By: "check", File: hostile, Message: hostile},
			Finding{By: "policy", ID: "SS009", File: "authz.yaml", Line: 7, Severity: "error", Message: `topic "a*"`, Hint: "+ for one level"},
			Finding{By: "policy", ID: "SS001", File: hostile, Line: 1, Severity: "info", Message: hostile},
			PolicyAnswer{User: "ann", Client: "c", Attributes: []string{"site=a"}, Method: "Read", On: "k", Allowed: true, Where: "authz.yaml:7 rules[0].stateStoreResources[0]", Entry: "ReadWrite k*", Assumes: []string{"something"}},
			PolicyAnswer{Method: "Connect", Lacks: "no rule names this client"},
			PolicyAnswer{Method: "Read", On: "k", Allowed: true, Where: "authz.yaml:7 rules[0].stateStoreResources[0]", Entry: "Read k", Needs: "connect"},
			PolicyTest{File: "authz.test.yaml", Line: 3, Who: "user ann", Question: "set k", Expected: "allow", Step: "write k", Where: "authz.yaml:7 rules[0].stateStoreResources[0]", Reason: "it allows Read, not Write"},
			PolicyTest{File: hostile, Line: 1, Who: hostile, Question: hostile, Expected: "deny", Where: hostile, Reason: hostile},
			PolicyHolder{Method: "Write", On: "k", Who: "user ann", If: "the client id is like ann", Where: "authz.yaml:7 rules[0].stateStoreResources[0]", Entry: "Write k*", Lacks: "it may not connect"},
			PolicyHolder{Method: "Read", On: hostile, Who: hostile, Where: hostile, Entry: hostile},
			PolicyAnswer{User: hostile, Method: "Publish", On: hostile, Where: hostile, Lacks: hostile},
			PolicyEntry{Who: "user ann", Method: "Read", On: "k*", Type: "Pattern", Where: "authz.yaml:7 rules[0]"},
			PolicyEntry{Who: hostile, Method: "Publish", On: hostile, Where: hostile, Never: "the topic is empty"},
			PolicyChange{Change: "lost", User: "ann", Client: "c", Method: "Read", On: "kx", From: "k*", Where: "old.yaml:7 rules[0]"},
			PolicyChange{Change: "allowed", Attributes: []string{"site=a"}, Method: "Publish", On: hostile, Where: hostile},
			PolicyText{Text: "kind: BrokerAuthorization\n", Notes: []string{"three keys"}},
		},
		"batch": {
			BatchSummary{Applied: 5, No: 2, Elapsed: 3500 * time.Microsecond},
			BatchSummary{Applied: 1, Refused: 1, Unknown: 2, Skipped: 3, Elapsed: 2 * time.Second, Resume: 17, Ahead: []LineRange{{18, 25}, {27, 27}}, NotRun: 3, More: true},
			BatchSummary{Resume: 1, NotRun: 1},
		},
		"get": {
			Get{Key: "setpoint", Found: true, Value: []byte("21.5"), Version: stored(), RTT: rtt},
			Get{Key: "setpoint"},
			Get{Key: "empty", Found: true, Version: stored(), RTT: rtt},
			Get{Key: "unknown", Found: true, Value: []byte("x"), Version: Version{}},
			Get{Key: hostile, Found: true, Value: []byte(hostile), Version: evil, Many: true},
			Get{Key: "later", Found: true, Value: []byte("ça va"), Version: version(1696374620000, 0, "n"), Many: true},
		},
		"event": {
			Event{Op: "initial", Key: "setpoint", HasValue: true, Value: []byte("21.5"), Version: stored(), Time: now()},
			Event{Op: "initial", Key: "missing", Time: now()},
			Event{Op: "found", Key: hostile, Continuity: "unknown", HasValue: true, Value: []byte(hostile), Version: evil, From: now().Add(-5 * time.Second), To: now(), Time: now()},
			Event{Op: "found", Key: "gone", Continuity: "unknown", From: now().Add(-5 * time.Second), To: now(), Time: now()},
			Event{Op: "set", Key: "setpoint", HasValue: true, Value: []byte("22\t\n"), Version: stored(), Time: now()},
			Event{Op: "set", Key: "empty", HasValue: true, Version: stored(), Time: now()},
			Event{Op: "set", Key: "no value", Time: now()},
			Event{Op: "delete", Key: "setpoint", Version: stored(), Time: now()},
			Event{Op: "delete", Key: "setpoint", Time: now()},
			Event{Op: "other", Key: "setpoint", Word: "RENAME\x1b", Version: stored(), Time: now()},
			Event{Op: "other", Key: "setpoint", Word: "APPEND", HasValue: true, Value: []byte("x"), Time: now()},
			Event{Op: "gap", Key: hostile, Continuity: "lost", Version: stored(), From: now().Add(-1500 * time.Millisecond), To: now(), Time: now()},
			Event{Op: "resync", Key: hostile, Continuity: "lost", HasValue: true, Value: []byte(hostile), Version: evil, Time: now()},
			Event{Op: "resync", Key: "setpoint", Continuity: "unknown", Time: now()},
			Event{Op: "error", Key: hostile, Message: "not authorized" + hostile, Version: stored(), Time: now()},
			Event{Op: "unaudited", Message: "context deadline exceeded", Time: now()},
			Ready{Keys: 3, Time: now()},
			End{Reason: "count", Events: 3, Time: now()},
		},
		"serving": {
			Serving{Op: "forward", URL: "mqtts://127.0.0.1:40000", ServerName: "aio-broker", CAFile: "ca.crt", SATFile: "token", Paste: []string{"export SSCLI_URL=mqtts://127.0.0.1:40000"}},
			Serving{Op: "serve", URL: "mqtts://127.0.0.1:8883", CAFile: "ca.crt", CertFile: "client.crt", KeyFile: "client.key", SATFile: "token"},
			Serving{Op: "serve", URL: "mqtt://127.0.0.1:1883", Paste: []string{"export SSCLI_URL=mqtt://127.0.0.1:1883"}},
		},
		"request": {
			LogEvent{Event: observe.Event{Op: "request", Time: now(), Client: "sensor-1", Verb: "set", Keys: []string{"k"}, Access: []observe.Access{observe.Writes}, Options: [][]byte{[]byte("NX")}, Outcome: "no", Cause: "exists", Rule: "authz.yaml:7 rules[0]: Write k*"}, Parsed: stored()},
			LogEvent{Event: observe.Event{Op: "request", Time: now(), Client: "sensor-1", User: "ann", Verb: "set", Keys: []string{"k"}, Fence: "1:0:x", Outcome: "ok", Result: "OK", Cause: "was missing",
				Value: []byte("21.5"), Clock: "1:0:c", Took: 12345 * time.Nanosecond, Topic: "clients/a/r", Sent: 31, Received: 5, Notified: []string{"w 1", "w2"}}, Parsed: stored(), Detailed: true},
			LogEvent{Event: observe.Event{Op: "request", Time: now(), Port: "redis", Client: "redis-1", Verb: "copy", Keys: []string{"a", "b\xff"}, Access: []observe.Access{observe.Reads, observe.Writes}, Outcome: "ok", Result: "OK"}, Detailed: true},
			LogEvent{Event: observe.Event{Op: "request", Time: now(), Client: "x", Outcome: "refused", Cause: "syntax error"}},
			LogEvent{Event: observe.Event{Op: "request", Time: now(), Client: hostile, User: hostile, Verb: hostile, Keys: []string{hostile}, Options: [][]byte{[]byte(hostile)}, Fence: hostile, Outcome: "ignored", Cause: hostile,
				Value: []byte(hostile), Topic: hostile, Notified: []string{hostile}}, Parsed: evil, Detailed: true},
			LogEvent{Event: observe.Event{Op: "expire", Time: now(), Keys: []string{hostile}, Notified: []string{"w"}}, Parsed: stored()},
			LogEvent{Event: observe.Event{Op: "expire", Time: now(), Keys: []string{"k"}}},
			LogEvent{Event: observe.Event{Op: "connect", Time: now(), Client: "x", User: "ann", Remote: "127.0.0.1:5", Protocol: "MQTT 5"}},
			LogEvent{Event: observe.Event{Op: "refuse", Time: now(), Client: hostile, Remote: "127.0.0.1:5", Reason: "bad username or password"}},
			LogEvent{Event: observe.Event{Op: "disconnect", Time: now(), Client: "x", Reason: hostile}},
		},
		"gateway": {
			Serving{Op: "gateway", URL: "redis://127.0.0.1:6379", Store: "mqtts://lab.example:8883", Paste: []string{"redis-cli -u redis://127.0.0.1:6379"}},
			Serving{Op: "gateway", URL: "rediss://127.0.0.1:6379", Paste: []string{"redis-cli -u rediss://127.0.0.1:6379"}},
		},
		"data-check": {
			DataCheck{File: "store.db", Keys: 3, Bytes: 120, Size: 32768},
			DataCheck{File: hostile, Keys: 3, Bytes: 120, Size: 32768, Damages: []string{"page 7: it is used twice", hostile}, More: 2, Salvaged: "new.db"},
		},
		"context": {
			Context{Op: "list", Name: "lab", Chosen: true, Broker: "mqtts://lab.example:8883", Width: 7},
			Context{Op: "list", Name: "staging", Protected: true, Broker: "embedded", Width: 7},
			Context{Op: "set", Name: "bare"},
			Context{Op: "set", Name: "odd", Broker: "mqtt://h\x1b:1883"},
			Context{Op: "use", Name: "prod", Chosen: true, Protected: true, Broker: "wss://prod.example:443/mqtt"},
			Context{Op: "use"},
			Context{Op: "rm", Name: "lab", Broker: "mqtts://lab.example:8883"},
		},
		"setting": {
			Setting{Name: "url", Value: "mqtts://lab.example:8883", Source: "context lab", File: "/u/me/.config/sscli/config.yaml", Width: 7, ValueWidth: 24},
			Setting{Name: "timeout", Value: "10s", Source: "default", Width: 7, ValueWidth: 24},
			Setting{Name: "port", Value: "1883", Source: "--port"},
			Setting{Name: "username", Value: hostile, Source: "SSCLI_USERNAME", File: "a\tb"},
		},
		"get-many": {
			Get{Key: "a", Found: true, Value: []byte("1\t2"), Version: stored(), Many: true},
			Get{Key: "two words", Many: true},
			Get{Key: "c", Found: true, Value: []byte("x"), Many: true},
		},
		"get-version-only": {
			Get{Key: "a", Found: true, Value: []byte("1"), Version: stored(), VersionOnly: true},
			Get{Key: "b", VersionOnly: true},
			Get{Key: "c", Found: true, VersionOnly: true},
			Get{Key: "a", Found: true, Version: stored(), VersionOnly: true, Many: true},
			Get{Key: "b", VersionOnly: true, Many: true},
		},
		"set": {
			Set{Key: "a", Applied: true, Version: stored(), RTT: rtt},
			Set{Key: "a", Applied: true},
			Set{Key: "a", Reason: "exists", Version: stored(), RTT: rtt},
			Set{Key: "a", Reason: "differs", Version: evil},
		},
		"del": {
			Del{Op: "del", Key: "a", Deleted: true, Version: stored(), RTT: rtt},
			Del{Op: "del", Key: "a", RTT: rtt},
			Del{Op: "vdel", Key: "a", Differs: true},
			Del{Op: "del", Key: "b", Changed: true, Many: true},
			Del{Op: "vdel", Key: "a", Deleted: true, Version: stored(), RTT: rtt},
			Del{Op: "del", Key: "\xfe", Deleted: true, Many: true},
		},
		"reply": {
			Reply{Words: words("GET", "a"), Value: wire.Value{Kind: wire.Blob, Text: []byte("21.5")}, Version: stored(), RTT: rtt},
			Reply{Words: words("SET", "a", "\xff"), Value: wire.Value{Kind: wire.SimpleString, Text: []byte("OK")}},
			Reply{Words: words("DEL", "a"), Value: wire.Value{Kind: wire.Integer, Int: -1}},
			Reply{Words: words("GET", "b"), Value: wire.Value{Kind: wire.Null}},
			Reply{Words: words("FOO"), Value: wire.Value{Kind: wire.SimpleError, Text: []byte("ERR unknown command")}},
			Reply{Words: words("GET", "c"), Value: wire.Value{Kind: wire.Blob, Text: []byte(hostile)}},
			Reply{Words: words("X"), Value: wire.Value{Text: []byte("%raw\r\n")}},
			Reply{Words: words("SCAN", "0"), Value: wire.Value{Kind: wire.Array}},
			Reply{Words: words("SCAN", "0"), Version: stored(), Value: wire.Value{Kind: wire.Array, Items: []wire.Value{
				{Kind: wire.Array, Items: []wire.Value{{Kind: wire.Blob, Text: []byte("k1")}, {Kind: wire.Blob, Text: []byte("\xff")}, {Kind: wire.Array}}},
				{Kind: wire.Integer, Int: 7},
				{Kind: wire.Array, Items: []wire.Value{{Kind: wire.Null}}},
			}}},
		},
		"lock": {
			Lock{Op: "acquire", Name: "build", Holder: "job-7", Token: stored(), TTL: time.Minute},
			Lock{Op: "renew", Name: hostile, Holder: hostile, Token: evil, TTL: 1500 * time.Millisecond},
			Lock{Op: "hold", Name: "build", Holder: "job-7", Token: stored(), TTL: time.Minute},
			Lock{Op: "release", Name: "build", Holder: "job-7"},
			Lock{Op: "break", Name: "build", Holder: "job-7"},
		},
		"lock-status": {
			LockStatus{Name: "build", Held: true, Holder: "job-7", Token: stored(), Age: 3250 * time.Millisecond},
			LockStatus{Name: "build", Held: true, Holder: "job-7", Token: stored(), Age: -90 * time.Second},
			LockStatus{Name: "build", Held: true, Holder: "", Token: Version{}},
			LockStatus{Name: "build"},
			LockStatus{Name: "build", Held: true, Holder: hostile, Token: evil, Age: time.Millisecond, Seen: true, Renewals: Renewals{Observed: 10 * time.Second, Seen: 3, Every: 3210 * time.Millisecond}},
			LockStatus{Name: "build", Held: true, Holder: "job-7", Token: stored(), Age: time.Minute, Renewals: Renewals{Observed: 500 * time.Millisecond}},
			LockStatus{Name: "build", Renewals: Renewals{Observed: 10 * time.Second}},
		},
		"lock-list": {
			LockStatus{List: true, Name: "build", Held: true, Holder: "job-7", Token: stored(), Age: 3250 * time.Millisecond},
			LockStatus{List: true, Name: "deploy-1", Held: true, Holder: "j", Token: Version{}},
			LockStatus{List: true, Name: "free"},
			LockStatus{List: true, Maybe: true, Name: "config", Held: true, Holder: "on", Token: stored(), Age: time.Minute},
			LockStatus{List: true, Name: "build", Held: true, Holder: hostile, Token: evil, Age: time.Millisecond, Seen: true, Renewals: Renewals{Observed: 10 * time.Second, Seen: 3, Every: 3210 * time.Millisecond}},
			LockStatus{List: true, Name: hostile, Held: true, Holder: strings.Repeat("x", 200), Token: stored(), Age: time.Minute, Renewals: Renewals{Observed: 30 * time.Second}},
			LockStatus{List: true, Name: "build", Held: true, Holder: "h", Token: stored(), Age: time.Hour, Renewals: Renewals{Observed: 150 * time.Second, Seen: 1}},
			LockStatus{List: true, Name: "build", Held: true, Holder: "h", Token: stored(), Age: 50 * time.Hour, Renewals: Renewals{Observed: 40 * time.Hour, Seen: 2}},
			LockStatus{List: true, Name: "build", Renewals: Renewals{Observed: 10 * time.Second}},
		},
		"lock-trace": {
			LockEvent{What: "free", Event: "initial", Name: "build", Time: now(), Unknown: true},
			LockEvent{What: "held", Event: "initial", Name: "build", Held: true, Holder: "job-7", Token: stored(), Time: now(), Unknown: true},
			LockEvent{What: "acquired", Event: "set", Name: "build", Held: true, Holder: "job-7", Token: stored(), Time: now(), For: 3 * time.Second, AtLeast: true},
			LockEvent{What: "renewed", Event: "set", Name: "build", Held: true, Holder: "job-7", Token: stored(), Time: now(), For: 3 * time.Second, Renewals: 1, Every: 3 * time.Second},
			LockEvent{What: "released", Event: "delete", Name: "build", Holder: "job-7", Token: stored(), Time: now(), For: 8 * time.Second, Renewals: 2, Every: 3 * time.Second, Inferred: true, Why: "it came soon"},
			LockEvent{What: "taken_over", Event: "set", Name: hostile, Held: true, Holder: hostile, Before: "job\x1b", Token: evil, Time: now(), For: 8 * time.Millisecond, Inferred: true, Why: "it\x1b expired"},
			LockEvent{What: "changed_hands", Event: "set", Name: "build", Held: true, Holder: "b", Before: "a", Token: stored(), Time: now(), For: 90 * time.Minute},
			LockEvent{What: "rewritten", Event: "set", Name: "build", Held: true, NoHolder: true, Token: stored(), Time: now(), For: time.Second},
			LockEvent{What: "gap", Event: "gap", Name: "build", Held: true, Holder: "a", Continuity: "lost", From: now().Add(-time.Second), To: now(), Time: now(), Unknown: true},
			LockEvent{What: "lost", Event: "error", Name: "build", Why: "not authorized", Time: now(), Unknown: true},
			LockEvent{What: "other", Event: "other", Name: "build", Held: true, Holder: "a", Word: "TOUCH\x1b", Why: "the store says TOUCH", Time: now(), Unknown: true},
			LockEvent{What: "written", Event: "set", Name: hostile, Guard: true, Token: stored(), Why: "while build was free", Time: now(), Unknown: true},
		},
		"lock-timeline": {
			Timeline{From: now(), To: now().Add(time.Minute), Locks: []Lane{
				{Name: "build", Holders: []Lane{
					{Name: "job-7", Holds: []Hold{
						{Interval: Interval{now(), now().Add(10 * time.Second)}, Open: true, End: "released", Renewals: []time.Time{now().Add(3 * time.Second), now().Add(6 * time.Second)}},
						{Interval: Interval{now().Add(40 * time.Second), now().Add(time.Minute)}},
					}},
					{Name: hostile, Holds: []Hold{{Interval: Interval{now().Add(11 * time.Second), now().Add(20 * time.Second)}, End: "expired"}}},
					{Unknown: true, Holds: []Hold{{Interval: Interval{now().Add(21 * time.Second), now().Add(22 * time.Second)}, End: "deleted"}, {Interval: Interval{now().Add(23 * time.Second), now().Add(25 * time.Second)}, End: "changed_hands"}}},
				}, Gaps: []Interval{{now().Add(30 * time.Second), now().Add(40 * time.Second)}}},
				{Name: hostile},
			}, Guards: []Lane{{Name: "artifact", Writes: []time.Time{now().Add(5 * time.Second)}, Removed: []time.Time{now().Add(50 * time.Second)}, Gaps: []Interval{{now().Add(30 * time.Second), now().Add(40 * time.Second)}}}}},
			Timeline{From: now(), To: now(), Locks: []Lane{{Name: "build"}}},
		},
		"explain": {
			Explanation{Key: "state", Verdict: "passes", Rule: "unfenced", Why: "a missing key has no fence"},
			Explanation{Key: "state", Token: stored(), Verdict: "refused", Rule: "fencing_ahead", AssumesClock: true, Why: "it is ahead"},
			Explanation{Key: hostile, Found: true, Version: Version{}, Verdict: "unknown", Why: "so\x1b it is", Hint: "sscli explain " + Word(hostile)},
			Explanation{Key: "state", Found: true, Version: stored(), Lock: "door", Token: evil, ToKey: "newer", Verdict: "passes", Rule: "fencing_newer", Why: "it is newer"},
			Explanation{Key: "state", Found: true, Version: stored(), Token: stored(), Asked: true, Verdict: "refused", Rule: "fencing_lower", Why: "it is lower"},
			Explanation{Key: "state", Found: true, Version: stored(), Lock: hostile, Held: true, Holder: hostile, Token: stored(), ToKey: "equal", Verdict: "unknown", Why: "why"},
			Explanation{Key: "state", Found: true, Version: stored(), Lock: "door", Held: true, Holder: "second", LockToken: evil, AtLeast: evil, Token: stored(), ToKey: "equal", ToLock: "older", Verdict: "refused", Rule: "fencing_lower", Assumes: true, Why: "it is older", Hint: "sscli lock run door"},
		},
		"ping": {
			Ping{Seq: 1, Key: "sscli-ping", RTT: rtt},
			Ping{Seq: 2, Key: "sscli-ping", Note: "no answer\n"},
			PingSummary{Sent: 4, Lost: 1, Min: rtt, Avg: 2 * time.Millisecond, P99: 3 * time.Millisecond, Max: 3 * time.Millisecond},
			PingSummary{Sent: 1, Lost: 1},
		},
		"hlc": {
			Clock{Op: "now", Version: stored()},
			Clock{Op: "parse", Version: stored()},
			Clock{Op: "parse", Version: evil},
			Clock{Op: "parse"},
			Compare{A: stored(), B: version(1696374427500, 0, "b"), Order: -1},
			Compare{A: evil, B: stored(), Order: 1},
			Compare{A: stored(), B: stored()},
			Clock{Op: "parse", Version: version(99_999_999_999_999, 0, "b")},
			Compare{A: version(0, 0, "a"), B: version(99_999_999_999_999, 0, "b"), Order: -1},
			Compare{A: version(math.MaxInt64, 0, "a"), B: version(math.MinInt64, 0, "b"), Order: 1},
		},
		"check": {
			Check{Name: "configuration", Status: Pass, Message: "mqtts://broker:8883", Facts: []Fact{{Name: "host", Source: "SSCLI_URL"}, {Name: "timeout", Value: "2s", Source: "--timeout"}}},
			Check{Name: "lookup", Status: Skip, Message: "127.0.0.1 is an address"},
			Check{Name: "tls", Status: Warn, Message: "TLS 1.3", Hint: "a new certificate in time", Took: rtt, Facts: []Fact{{Name: "certificate", Value: hostile}}},
			Check{Name: "connect", Status: Fail, Message: "refused " + hostile, Hint: "--username"},
			CheckSummary{Passed: 1, Warned: 1, Failed: 1, Skipped: 1},
			CheckSummary{Passed: 9, Warned: 2},
		},
		"bench": {
			Bench{Verb: "get", Count: 800, Elapsed: 2 * time.Second, Latency: Latency{Min: rtt / 2, Mean: rtt, P50: rtt, P90: 2 * rtt, P99: 3 * rtt, P999: 4 * rtt, Max: 5 * rtt}},
			Bench{Verb: "all", Errors: 3, Elapsed: time.Second},
		},
		"build": {
			Build{Version: "1.2.3", Commit: "0123abc", Date: "2026-01-02", Go: "go1.26", Platform: "linux/amd64"},
			Build{Version: "1.2.3", Commit: "0123abc", Modified: true, Go: "go1.26"},
			Build{Version: "(devel)", Go: "go1.26"},
		},
		"fault": {
			Fault{Code: 6, Kind: "fencing_lower", Message: `set "a": the token is older than the one of the key`, StoreError: "the request fencing token is a lower version", Hint: Hint{{Text: "sscli lock status a", Command: true}}},
			Fault{Code: 11, Kind: "outcome_unknown", Message: "the key is missing now", Outcome: "unknown"},
			Fault{Code: 2, Kind: "usage", Message: "unknown command \x1b[31m\nred", Line: 3},
			Fault{Code: 5, Message: "bad \xff", StoreError: "\xff"},
			Note{Level: Warning, Message: "the key holds your value", Hint: "sscli get a"},
			Note{Level: Warning, Message: "\u202e", Line: 3},
			Note{Level: Warning, Message: "the broker is away", Time: now()},
		},
		"elapsed": {
			Elapsed{Took: 1234567 * time.Microsecond},
			Note{Level: Remark, Message: "What follows \x1b[1mis\xff a lock."},
			Note{Level: Notice, Message: "waiting for lock \"build\", held by \"job\x1b\"", Line: 2},
			Note{Level: Notice, Message: "the broker answers again", Time: now()},
			Note{Level: Aside, Message: "exit code 6\x1b, 0.84s"},
		},
	}
}

func TestGolden(t *testing.T) {
	outputs := []struct {
		name string
		o    Options
	}{
		{"human", Options{Output: "human"}},
		{"80 columns", Options{Output: "human", Terminal: true, Size: func() (int, int) { return 80, 24 }}},
		{"color", Options{Output: "human", Color: true}},
		{"raw", Options{Output: "raw"}},
		{"json", Options{Output: "json"}},
		{"template", Options{Output: "template={{.op}}|{{.key}}|{{.value}}{{.value_b64}}{{if .version}}|{{json .version}}{{end}}"}},
		{"template on a terminal", Options{Terminal: true, Output: "template={{.op}}\t{{.key}}\t{{.reply}}\t{{json .reason}}"}},
	}
	for name, rs := range samples() {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			human := ""
			for _, o := range outputs {
				var section, out strings.Builder
				o.o.Now = now
				p, err := New(&out, o.o)
				if err != nil {
					t.Fatal(err)
				}
				var rows []Row
				for _, r := range rs {
					if row, ok := r.(Row); ok {
						rows = append(rows, row)
					}
				}
				p.Measure(rows...)
				for _, r := range rs {
					out.Reset()
					if err := p.Print(r); err != nil {
						t.Fatal(err)
					}
					// Escape characters would make the golden file hard to read.
					line := strings.ReplaceAll(out.String(), "\x1b", "␛")
					section.WriteString(line)
					if !strings.HasSuffix(line, "\n") {
						section.WriteString("␄\n") // no output, or no newline at its end
					}
				}
				switch {
				case o.name == "human":
					human = section.String()
				case o.o.Size != nil && section.String() == human:
					continue // the same on a terminal
				}
				fmt.Fprintf(&got, "-- %s --\n%s", o.name, section.String())
			}
			golden(t, name, got.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func words(w ...string) (words [][]byte) {
	for _, word := range w {
		words = append(words, []byte(word))
	}
	return words
}

func TestNewErrors(t *testing.T) {
	for output, want := range map[string]string{
		"":                   `output "": must be human, wide, raw, json or template=TEMPLATE`,
		"ya\nml":             `output "ya\nml": must be human, wide, raw, json or template=TEMPLATE`,
		"template":           `output "template": must be human, wide, raw, json or template=TEMPLATE`,
		"template={{":        "output template, line 1: unclosed action",
		"template={{foo .}}": `output template, line 1: function "foo" not defined`,

		"template={{.nothing}}":                                 "output template, line 1:2: no result has the field nothing",
		"template={{.key.x}}":                                   "output template, line 1:6: no result has the field key.x: key is no object",
		"template={{.version.x}}":                               "output template, line 1:10: no result has the field version.x: version has hlc, wall_ms, counter, node, time",
		"template={{.version.hlc.x}}":                           "output template, line 1:10: no result has the field version.hlc.x: version has hlc, wall_ms, counter, node, time",
		"template=a\n{{if .found}}{{else}}{{len .keyy}}{{end}}": "output template, line 2:27: no result has the field keyy",
		"template={{with .version}}{{$.nothing}}{{end}}":        "output template, line 1:20: no result has the field nothing",
		"template={{range .nothing}}{{end}}":                    "output template, line 1:8: no result has the field nothing",
		"template={{printf `%s` (.nothing)}}":                   "output template, line 1:15: no result has the field nothing",
		"template={{template `t` .code}}{{define `t`}}{{end}}":  "output template, line 1:15: no result has the field code",
	} {
		_, err := New(io.Discard, Options{Output: output})
		if err == nil || err.Error() != want {
			t.Errorf("New with output %q: got error %v, want %s", output, err, want)
		}
	}
}

// writes records each Write.
type writes struct {
	got   []string
	short bool
	err   error
}

func (w *writes) Write(b []byte) (int, error) {
	w.got = append(w.got, string(b))
	if w.short {
		return len(b) - 1, nil
	}
	return len(b), w.err
}

func TestOneWritePerResult(t *testing.T) {
	for output, want := range map[string][]string{
		"raw":                   {"v", "OK\t-\n"},
		"human":                 {"v\nversion unknown\n", "(nil)\n", "OK\n"},
		"json":                  {`{"op":"get","key":"k","found":true,"value":"v"}` + "\n", `{"op":"get","key":"k","found":false}` + "\n", `{"op":"set","key":"k","applied":true}` + "\n"},
		"template={{.op}}\nend": {"get\nend\n", "get\nend\n", "set\nend\n"},
	} {
		var w writes
		p, err := New(&w, Options{Output: output})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []Result{Get{Key: "k", Found: true, Value: []byte("v")}, Get{Key: "k"}, Set{Key: "k", Applied: true}} {
			if err := p.Print(r); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, w.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", output, diff)
		}
	}
}

func TestPrintErrors(t *testing.T) {
	broken := errors.New("broken pipe")
	for _, tt := range []struct {
		w      io.Writer
		output string
		want   string
	}{
		{&writes{err: broken}, "json", "broken pipe"},
		{&writes{short: true}, "json", "short write"},
		{io.Discard, "template={{slice .key 2}}", `output template, line 1:2: at <slice .key 2>: error calling slice: index out of range: 2`},
	} {
		p, err := New(tt.w, Options{Output: tt.output})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Print(Get{Key: "k"}); err == nil || err.Error() != tt.want {
			t.Errorf("Print: got error %v, want %s", err, tt.want)
		}
	}
}

func TestTemplate(t *testing.T) {
	const key = "k\n\x1b[2J"
	get := Get{Key: key, Found: true, Value: []byte("v"), Version: stored()}
	for _, tt := range []struct {
		template       string
		pipe, terminal string
	}{
		{"{{.key}}", key, `k\n\x1b[2J`},
		{"{{printf \"%s\\n%q %x\" .op .key .op}}", "get\n" + fmt.Sprintf("%q", key) + " 676574", "get\n" + `"k\\n\\x1b[2J" 676574`},
		{"{{printf \"%d\" .key}}", fmt.Sprintf("%%!d(string=%s)", key), `%!d(string=k\n\x1b[2J)`},
		{"{{printf \"%s\" .op .key}}", "get%!(EXTRA string=" + key + ")", `get%!(EXTRA format.text=k\n\x1b[2J)`},
		{"\t\x1b[1m{{.key}}\x1b[0m", "\t\x1b[1m" + key + "\x1b[0m", "\t\x1b[1m" + `k\n\x1b[2J` + "\x1b[0m"},
		{"{{.version.hlc}} {{.version.wall_ms}}", "1696374425000:1:StateStore 1696374425000", "1696374425000:1:StateStore 1696374425000"},
		{"{{base64 .key}} {{base64 .reply}}", base64.StdEncoding.EncodeToString([]byte(key)) + " ", base64.StdEncoding.EncodeToString([]byte(key)) + " "},
		{"{{quote .key}} {{quote .version.counter}}", `"k\n\x1b[2J" "1"`, `"k\n\x1b[2J" "1"`},
		{"{{json .key}} {{json .reply}}", `"k\n\u001b[2J" null`, `"k\n\u001b[2J" null`},
		{"{{json .version}}", `{"counter":1,"hlc":"1696374425000:1:StateStore","node":"StateStore","time":"2023-10-03T23:07:05.000Z","wall_ms":1696374425000}`, `{"counter":1,"hlc":"1696374425000:1:StateStore","node":"StateStore","time":"2023-10-03T23:07:05.000Z","wall_ms":1696374425000}`},
		{`{{if eq .op "get"}}{{.reply}}{{else}}other{{end}}{{slice .key 2 4}}`, "\x1b[", `\x1b[`},
		{`{{$x := .reply}}[{{$x}}{{with .reply}}{{.}}{{else}}{{.token.hlc}}{{end}}]`, "[]", "[]"},
		{`{{define "d"}}{{.reply}}{{.op}}{{end}}{{template "d" .}}{{range .reply}}{{else}}{{.reply}}{{end}}`, "get", "get"},
		{`{{html .key}}{{"\n"}}{{len .key}}`, key + "\n6", `k\n\x1b[2J` + "\n6"},
		{`{{.}}`, "map[found:true key:" + key + " op:get value:v version:map[counter:1 hlc:1696374425000:1:StateStore node:StateStore time:2023-10-03T23:07:05.000Z wall_ms:1696374425000]]", `map[found:true key:k\n\x1b[2J op:get value:v version:map[counter:1 hlc:1696374425000:1:StateStore node:StateStore time:2023-10-03T23:07:05.000Z wall_ms:1696374425000]]`},
	} {
		for _, terminal := range []bool{false, true} {
			want := tt.pipe
			if terminal {
				want = tt.terminal
			}
			got := render(t, Options{Output: "template=" + tt.template, Terminal: terminal}, get)
			if diff := cmp.Diff(want+"\n", got); diff != "" {
				t.Errorf("%s, terminal %v (-want +got):\n%s", tt.template, terminal, diff)
			}
		}
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                  "0s ago",
		12*time.Millisecond + 7:            "12ms ago",
		3*time.Minute + 12*time.Second + 1: "3m12s ago",
		23*time.Hour + 59*time.Minute + 59*time.Second: "23h59m ago",
		25 * time.Hour:   "1d1h ago",
		-3 * time.Second: "in 3s",
		-1 << 63:         "in more than 106751d",
	} {
		if got := Age(d); got != want {
			t.Errorf("Age(%d): got %s, want %s", d, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 52100: "0.05ms", 120 * time.Microsecond: "0.12ms", -340 * time.Microsecond: "-0.34ms", 2 * time.Millisecond: "2ms",
		1500 * time.Millisecond: "1.5s", 90 * time.Second: "90s", 250 * time.Second: "4m10s", 25 * time.Hour: "1d1h", -25 * time.Hour: "-1d1h",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%d): got %s, want %s", d, got, want)
		}
	}
}

// everything returns results with the same text wherever text can come from the network.
func everything(key string, value []byte) []Result {
	v := Version{Wall: 1696374425000, Node: key}
	return []Result{
		Get{Key: key, Found: true, Value: value, Version: v, Many: true},
		Get{Key: key, Found: true, Value: value, Version: v},
		Set{Key: key, Reason: key, Version: v},
		Del{Key: key, Version: v, Many: true},
		Del{Op: "vdel", Key: key, Version: v},
		Reply{Words: [][]byte{value}, Version: v, Value: wire.Value{Kind: wire.Array, Items: []wire.Value{
			{Kind: wire.Blob, Text: value}, {Kind: wire.SimpleString, Text: value}, {Kind: wire.SimpleError, Text: value}, {Text: value},
		}}},
		Ping{Key: key, Note: key},
		Clock{Op: "now", Version: v},
		Clock{Op: "parse", Version: v},
		Compare{A: v, B: v},
		Build{Version: key, Commit: key},
		Fault{Kind: key, Message: key, StoreError: string(value), Hint: Hint{{Text: key}}},
		Note{Level: Warning, Message: key, Hint: string(value)},
		NewLongKey(key, value, v),
		ExportSummary{Meanwhile: Meanwhile{Written: 1, Changed: []string{key}}},
		ImportPlan{Key: key, Action: "replace", Version: v},
		Difference{Change: "changed", Key: key, Old: value, New: value, OldVersion: v, Fields: []FieldChange{{Path: key, Old: jsonOf(key), New: jsonOf(string(value))}}},
		Difference{Change: "changed", Key: key, Old: value, New: value},
		Apply{Key: key, Action: "changed", Version: v},
		Event{Op: "set", Key: key, Value: value, HasValue: true, Field: FieldChange{Path: key, Old: jsonOf(key), New: jsonOf(string(value))}},
		EditConflict{Key: key, Theirs: value, Ours: []byte(key)},
		LogEvent{Event: observe.Event{Op: "request", Client: key, User: key, Verb: key, Keys: []string{key}, Options: [][]byte{[]byte(key)}, Fence: key, Outcome: "no", Cause: string(value), Result: key,
			Value: value, Clock: key, Topic: key, Notified: []string{key}}, Parsed: v, Detailed: true},
		LogEvent{Event: observe.Event{Op: "request", Outcome: "ok", Result: key}},
		LogEvent{Event: observe.Event{Op: "expire", Keys: []string{key}}, Parsed: v},
		LogEvent{Event: observe.Event{Op: "connect", Client: key, User: key, Remote: key, Protocol: key}},
		LogEvent{Event: observe.Event{Op: "refuse", Client: key, Remote: key, Reason: string(value)}},
		LogEvent{Event: observe.Event{Op: "disconnect", Client: key, Reason: key}},
	}
}

// jsonOf returns a text as JSON, with no unnecessary escapes.
func jsonOf(text string) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode([]any{text, 1.5}); err != nil {
		return "null"
	}
	return out.String()
}

func FuzzTerminal(f *testing.F) {
	f.Add("key", []byte("value"))
	f.Add("\x1b]0;\a\u202e\u200b\u2028\u0085\xff", []byte("\r\n\t\x00\x7f\u00a0\U000e0001"))
	outputs := []string{"human", "json", `template={{.}}{{.key}}{{.value}}{{printf "%d %v" .reply .message}}{{quote .key}}{{json .}}{{html .key}}`}
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		for _, output := range outputs {
			for _, r := range everything(key, value) {
				got := render(t, Options{Output: output, Terminal: true}, r)
				if !shows(got, "\n\t") {
					t.Errorf("%s of %#v: %q", output, r, got)
				}
				if !strings.HasSuffix(got, "\n") {
					t.Errorf("%s of %#v: no newline: %q", output, r, got)
				}
			}
		}
	})
}

// shows reports whether s is safe on a terminal: printable except for the characters in extra.
func shows(s, extra string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsPrint(r) && !strings.ContainsRune(extra, r)
	})
}

func FuzzJSON(f *testing.F) {
	f.Add("key", []byte("value"))
	f.Add("\u2028<&>\U000e0001", []byte("\xff\x00\\\"\n"))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		get := render(t, Options{Output: "json"}, Get{Key: key, Found: true, Value: value})
		for _, template := range []string{"{{json .}}", "{{.value}}"} {
			got := render(t, Options{Output: "template=" + template}, Get{Key: key, Found: true, Value: value})
			var same, object map[string]any
			switch {
			case template == "{{.value}}":
				if got != string(value)+"\n" {
					t.Errorf("%s of %q: %q", template, value, got)
				}
			case json.Unmarshal([]byte(got), &same) != nil || json.Unmarshal([]byte(get), &object) != nil || !cmp.Equal(same, object):
				t.Errorf("%s: %q, want the fields of %q", template, got, get)
			}
		}
		if strings.IndexByte(get, '\n') != len(get)-1 {
			t.Errorf("not one line: %q", get)
		}
		var got struct {
			Key, Value       *string
			KeyB64, ValueB64 *[]byte
		}
		get = strings.NewReplacer(`"key_b64":`, `"KeyB64":`, `"value_b64":`, `"ValueB64":`).Replace(get)
		if err := json.Unmarshal([]byte(get), &got); err != nil {
			t.Fatalf("%v: %q", err, get)
		}
		for _, tt := range []struct {
			want string
			text *string
			b64  *[]byte
		}{{key, got.Key, got.KeyB64}, {string(value), got.Value, got.ValueB64}} {
			switch {
			case (tt.text == nil) == (tt.b64 == nil):
				t.Errorf("not exactly one form of %q: %q", tt.want, get)
			case tt.text != nil && *tt.text != tt.want, tt.b64 != nil && string(*tt.b64) != tt.want:
				t.Errorf("does not decode to %q: %q", tt.want, get)
			case tt.b64 != nil && utf8.ValidString(tt.want):
				t.Errorf("base64 of UTF-8: %q", get)
			}
		}
	})
}

// FuzzRawLine: raw lines of results with a key have three columns, whatever the keys contain.
func FuzzRawLine(f *testing.F) {
	f.Add("key", []byte("value"))
	f.Add("\t\n\\", []byte("\xff\r\n"))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		v := Version{Wall: 1696374425000, Node: key}
		line := render(t, Options{Output: "raw"}, Get{Key: key, Found: true, Value: value, Version: v, Many: true})
		var got []string
		for column := range strings.SplitSeq(strings.TrimSuffix(line, "\n"), "\t") {
			text, err := Unescape(column)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, text)
		}
		if diff := cmp.Diff([]string{key, v.String(), string(value)}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	})
}

func BenchmarkGet(b *testing.B) {
	for _, output := range []string{"raw", "json", "human"} {
		b.Run(output, func(b *testing.B) {
			p, err := New(io.Discard, Options{Output: output})
			if err != nil {
				b.Fatal(err)
			}
			get := Get{Key: "setpoint", Found: true, Value: bytes.Repeat([]byte("21.5\n"), 20), Version: stored(), RTT: 1840 * time.Microsecond, Many: true}
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Print(get); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
