package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// otherTools returns commands of other tools. Each comes with the path of the sscli command below which users of those
// tools would type it.
func otherTools() [][2]string {
	return [][2]string{
		{"", // commands of redis-cli
			"acl append asking auth bgrewriteaof bgsave bitcount bitfield bitop bitpos blmove blmpop blpop brpop bzpopmax client " +
				"cluster command config copy dbsize debug decr decrby discard dump echo eval evalsha exec exists expire expireat " +
				"expiretime failover fcall flushall flushdb function geoadd getbit getdel getex getrange getset hdel hello hexists " +
				"hget hgetall hincrby hkeys hlen hmget hmset hscan hset hsetnx hstrlen hvals incr incrby incrbyfloat info lastsave " +
				"latency lcs lindex linsert llen lmove lolwut lpop lpos lpush lrange lrem lset ltrim memory mget migrate module " +
				"monitor move mset msetnx multi object persist pexpire pexpireat pexpiretime pfadd psetex psubscribe psync pttl " +
				"publish pubsub quit randomkey readonly rename renamenx replicaof reset restore role rpop rpush sadd save scard " +
				"script sdiff select setbit setex setnx setrange shutdown sinter sismember slowlog smembers sort spop spublish " +
				"srem sscan ssubscribe strlen subscribe substr sunion swapdb sync time touch ttl type unlink unsubscribe unwatch " +
				"wait waitaof xadd xlen xrange xread zadd zcard zcount zrange zrank zrem zscan zscore"},
		{"", // commands of etcdctl
			"alarm check compaction defrag downgrade elect endpoint lease make-mirror member move-leader role snapshot txn user"},
		{"", // commands of kubectl
			"annotate api-resources api-versions apply attach auth autoscale certificate cluster-info config cordon cp create " +
				"debug delete describe diff drain edit events exec explain expose kustomize label logs options patch plugin " +
				"port-forward proxy replace rollout run scale taint top uncordon wait"},
		{"", // commands of consul, mosquitto, SQL and file systems, and plain words
			"agent catalog connect event force-leave intention join keygen keyring kv leave login logout maint members operator " +
				"peering reload resource rtt services session tls troubleshoot validate pub sub passwd insert select upsert truncate " +
				"begin commit rollback describe show use grant revoke drop alter table index query ls cat cd pwd mkdir touch find grep " +
				"list read write store fetch remove add new put post head search count size clear print lock-run locks acquire " +
				"release unlock hold renew status stats stat health test start stop restart server emulator repl console contexts " +
				"switch whoami env init setup configure password token license upgrade update about docs manual export import " +
				"backup load compare decode parse now date clock history source foo bar test123"},
		{"lock", "list ls get show info who owner take create add remove delete unlock free break steal force extend refresh keepalive " +
			"exec with try wait watch trace log history renew-all deploy build jobs/nightly"},
		{"context", "ls get-contexts current current-context get view delete remove del rename mv copy add create new edit switch select " +
			"use-context default unset foo"},
		{"hlc", "new time show decode format cmp diff sort foo"},
		{"completion", "tcsh ksh sh elvish nushell pwsh foo"},
		{"config", "get-contexts use-context current-context view set-context set-credentials delete-context rename-context"},
		{"kv", "get put delete list export import"},
		{"lease", "grant revoke timetolive list keep-alive"},
		{"snapshot", "save restore status"},
	}
}

// TestHabits shows what sscli suggests for each command of other tools. It checks that each suggestion exists. Whether
// the suggestion is related is for the reader of testdata/habits.golden to judge.
func TestHabits(t *testing.T) {
	t.Parallel()
	root := cmdline.NewRoot(newApp())
	var got strings.Builder
	seen := make(map[string]bool)
	for _, tool := range otherTools() {
		for word := range strings.FieldsSeq(tool[1]) {
			line := strings.TrimSpace(tool[0] + " " + word)
			if seen[line] {
				continue
			}
			seen[line] = true
			words := strings.Fields(line)
			if cmd, rest, err := root.Find(words); err == nil && len(rest) == 0 && cmd != root {
				continue // sscli has this command
			}
			a := newApp()
			usage, ok := errors.AsType[*fault.UsageError](cmdline.Run(t.Context(), a, append(words, "a")))
			if !ok {
				t.Errorf("%s: want a usage error", line)
				continue
			}
			if bad := badHint(root, usage.Hint); bad != "" {
				t.Errorf("%s: the hint names %s, which sscli does not have: %s", line, bad, usage.Hint)
			}
			why := ""
			if _, after, ok := strings.Cut(usage.Error(), `": `); ok && !strings.HasPrefix(after, "expected ") {
				why = "  (" + after + ")"
			}
			fmt.Fprintf(&got, "%-28s %s%s\n", line, usage.Hint, why)
		}
	}
	const file = "testdata/habits.golden"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
