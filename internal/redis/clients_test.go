package redis_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/full"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// redisCLI runs redis-cli against a server.
func redisCLI(t *testing.T, s *emulator.Server, stdin string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), redistest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "redis-cli", append([]string{"-u", s.RedisURL()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli %q: %v: %s", args, err, out)
	}
	return string(out)
}

func TestCLI(t *testing.T) {
	t.Parallel()
	full.Program(t, "redis-cli")
	s := emulator.Start(t, emulator.Options{Redis: "127.0.0.1:0"})
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"set", "k", "v"}, "OK\n"},
		{[]string{"get", "k"}, "v\n"},
		{[]string{"-3", "get", "nothing"}, "\n"},
		{[]string{"--no-raw", "-3", "mget", "k", "nothing"}, "1) \"v\"\n2) (nil)\n"},
		{[]string{"-3", "--json", "config", "get", "save"}, "{\"save\":\"\"}\n"},
		{[]string{"--no-raw", "incr", "n"}, "(integer) 1\n"},
		{[]string{"--scan", "--pattern", "k*"}, "k\n"},
		{[]string{"lpush", "k", "v"}, "ERR unknown command 'lpush', the state store holds strings only\n\n"},
	} {
		if got := redisCLI(t, s, "", c.args...); got != c.want {
			t.Errorf("redis-cli %q: %q, want %q", c.args, got, c.want)
		}
	}
	if got := redisCLI(t, s, "set a 1\nget a\nmulti\nincr a\nexec\n"); got != "OK\n1\nOK\nQUEUED\n2\n" {
		t.Errorf("commands from standard input: %q", got)
	}
	var bulk strings.Builder
	for i := range 10_000 {
		bulk.Write(redistest.Request("SET", fmt.Sprintf("bulk:%d", i), "v"))
	}
	if got := redisCLI(t, s, bulk.String(), "--pipe"); !strings.Contains(got, "errors: 0, replies: 10000") {
		t.Errorf("--pipe: %s", got)
	}
	if got := redisCLI(t, s, "", "--bigkeys"); !strings.Contains(got, "Sampled 10003 keys") {
		t.Errorf("--bigkeys: %s", got)
	}
	if got := strings.Count(redisCLI(t, s, "", "--scan", "--pattern", "bulk:*"), "\n"); got != 10_000 {
		t.Errorf("--scan: %d keys", got)
	}
}

// TestRecipe follows the example in the documentation of keyspace notifications.
func TestRecipe(t *testing.T) {
	t.Parallel()
	full.Program(t, "redis-cli")
	s := emulator.Start(t, emulator.Options{Redis: "127.0.0.1:0"})
	if got := redisCLI(t, s, "", "config", "set", "notify-keyspace-events", "KEA"); got != "OK\n" {
		t.Fatal(got)
	}
	ctx, cancel := context.WithTimeout(context.Background(), redistest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "redis-cli", "-u", s.RedisURL(), "--csv", "psubscribe", "__key*__:*")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // Wait reports only the kill
	}()
	lines := bufio.NewScanner(out)
	next := func() string {
		for lines.Scan() {
			if !strings.HasPrefix(lines.Text(), "Reading messages") {
				return lines.Text()
			}
		}
		return fmt.Sprint("the end: ", lines.Err())
	}
	if got := next(); got != `"psubscribe","__key*__:*",1` {
		t.Error(got)
	}
	if _, err := s.Set("mykey", "over MQTT"); err != nil {
		t.Fatal(err)
	}
	redisCLI(t, s, "", "del", "mykey")
	for _, want := range []string{
		`"pmessage","__key*__:*","__keyspace@0__:mykey","set"`, `"pmessage","__key*__:*","__keyevent@0__:set","mykey"`,
		`"pmessage","__key*__:*","__keyspace@0__:mykey","del"`, `"pmessage","__key*__:*","__keyevent@0__:del","mykey"`,
	} {
		if got := next(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestInfoCPU: INFO cpu shows the processor time of the process.
func TestInfoCPU(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{})
	var system, user float64
	lines := strings.NewReplacer("\r\n", "\n").Replace(c.Do(t, "INFO", "cpu"))
	_, lines, _ = strings.Cut(lines, "\n")
	if n, err := fmt.Sscanf(lines, "# CPU\nused_cpu_sys:%f\nused_cpu_user:%f", &system, &user); n != 2 || system+user <= 0 {
		t.Errorf("%q: %v", lines, err)
	}
}

// TestLoginTexts: an unauthenticated client gets the same replies as from a redis-server.
func TestLoginTexts(t *testing.T) {
	t.Parallel()
	s, _ := start(t, emulator.Options{CheckLogin: emulator.Passwords(map[string]string{"default": "secret"})})
	address := redistest.StartServer(t)
	redistest.Dial(t, "unix", address).Expect(t, "+OK\r\n", "CONFIG", "SET", "requirepass", "secret")
	theirs, ours := redistest.Dial(t, "unix", address), redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	for _, command := range []string{"HELLO", "HELLO 3", "HELLO 4", "HELLO 3 AUTH default wrong", "HELLO 3 SETNAME x", "GET k", "AUTH nobody x", "AUTH wrong", "SSUBSCRIBE x", "QUIT"} {
		if got, want := ours.Do(t, strings.Fields(command)...), theirs.Do(t, strings.Fields(command)...); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

func TestBenchmark(t *testing.T) {
	t.Parallel()
	full.Program(t, "redis-benchmark")
	s := emulator.Start(t, emulator.Options{Redis: "127.0.0.1:0"})
	for _, args := range [][]string{
		{"-t", "ping_inline,ping_mbulk,set,get,incr,mset", "-n", "2000", "-q", "-r", "100"},
		{"-t", "set,get", "-n", "2000", "-q", "-P", "64"},
		{"-n", "500", "-q", "--csv", "append", "k", "x"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), redistest.Patience)
		out, err := exec.CommandContext(ctx, "redis-benchmark", append([]string{"-p", redistest.Address(s.RedisURL())[len("127.0.0.1:"):]}, args...)...).CombinedOutput()
		cancel()
		if err != nil || strings.Contains(strings.ToLower(string(out)), "error") {
			t.Errorf("redis-benchmark %q: %v: %s", args, err, out)
		}
	}
	if e, ok := s.Get("k"); !ok || len(e.Value) != 500 {
		t.Errorf("k has %d bytes", len(e.Value))
	}
}

const pythonScript = `
import os, sys, redis, threading
r = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
assert r.set("k", "v", px=100000) is True
assert r.get("k") == "v" and 0 < r.pttl("k") <= 100000
assert r.set("k", "w", nx=True) is None
assert r.mset({"a": 1, "b": 2}) is True and r.mget("a", "b", "c") == ["1", "2", None]
assert r.incr("a", 41) == 42 and r.incrbyfloat("b", 0.5) == 2.5
assert r.append("k", "x") == 2 and r.strlen("k") == 2 and r.getrange("k", 0, 0) == "v"
assert r.exists("a", "b", "c") == 2 and r.delete("a", "c") == 1
assert r.expire("b", 100) and r.persist("b") and r.ttl("b") == -1
assert sorted(r.scan_iter("*")) == ["b", "k"] and sorted(r.keys()) == ["b", "k"] and r.dbsize() == 2
with r.pipeline() as p:
    p.watch("b")
    p.multi(); p.set("b", "1"); p.incr("b")
    assert p.execute() == [True, 2]
with r.pipeline() as p:
    p.watch("b")
    r.set("b", "changed")
    p.multi(); p.set("b", "lost")
    try: p.execute(); raise SystemExit("no WatchError")
    except redis.WatchError: pass
try: r.lpush("l", 1); raise SystemExit("no error")
except redis.ResponseError as e: assert str(e) == "unknown command 'LPUSH', the state store holds strings only", e
assert r.set("n", 5) and r.object("encoding", "n") == "int" and r.touch("n", "c") == 1 and r.memory_usage("n") > 0 and r.delete("n") == 1
assert len(r.command()) == r.command_count() and "client|list" in [c["cmd"] for c in r.client_list()]
try: redis.cluster.RedisCluster(host=r.connection_pool.connection_kwargs["host"], port=r.connection_pool.connection_kwargs["port"]); raise SystemExit("a cluster")
except redis.exceptions.RedisClusterException as e: assert "Cluster mode is not enabled" in str(e), e
assert r.info()["redis_version"] == "7.0.15" and r.info()["statestore_backend"] == "emulator"
r.config_set("notify-keyspace-events", "KEA"); assert r.config_get("notify*") == {"notify-keyspace-events": "AKE"}
p = r.pubsub()
p.psubscribe("__keyspace@0__:*")
assert p.get_message(timeout=60)["type"] == "psubscribe"
r.set("told", "v", ex=1000)
got = [p.get_message(timeout=60) for _ in range(2)]
assert [m["data"] for m in got] == ["set", "expire"], got
status, version = r.execute_command("SS.SET", "lock", "me", "NEX", "PX", 1000000)
assert status == "OK" and r.execute_command("SS.VERSION", "lock") == version
assert r.execute_command("SS.SET", "fenced", "v", "FT", version)[0] == "OK"
try: r.set("fenced", "w"); raise SystemExit("no fencing")
except redis.ResponseError as e: assert "fencing token" in str(e)
l = r.lock("lock2", timeout=1000)
# release needs a script, which is not run here
assert l.acquire(blocking=False) is True and r.get("lock2") is not None
print("done")
`

func TestPython(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3" // has Debian's packages
	full.Program(t, python)
	s := emulator.Start(t, emulator.Options{Redis: "127.0.0.1:0"})
	if err := exec.Command(python, "-c", "import redis.client").Run(); err != nil {
		full.Missing(t, "python3-redis is not installed")
	}
	cmd := exec.Command(python, "-c", pythonScript)
	cmd.Dir = t.TempDir() // a directory without a subdirectory named redis
	cmd.Env = append(os.Environ(), "REDIS_URL="+s.RedisURL())
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "done\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestPipelineSize: CLIENT INFO shows the bytes of the whole pipeline, and of the request itself, as
// Redis does.
func TestPipelineSize(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{})
	info := string(redistest.Request("CLIENT", "INFO"))
	pipeline := info + string(redistest.Request("PING")) + info
	if _, err := c.Conn.Write([]byte(pipeline)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"qbuf=66 ", "PONG", "qbuf=66 "} {
		got, err := c.Frame()
		if err != nil || !strings.Contains(string(got), want) || want != "PONG" && !strings.Contains(string(got), " argv-mem=26 ") {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

// TestLongLabels: the texts that clients put into the reply to CLIENT LIST are short, because others wait for the reply.
func TestLongLabels(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{})
	longest := strings.Repeat("x", 1024)
	const tooLong = " cannot be longer than 1024 bytes.\r\n"
	for _, test := range []struct {
		what  string
		words []string
	}{
		{"Client names", []string{"CLIENT", "SETNAME"}}, {"Client names", []string{"HELLO", "2", "SETNAME"}},
		{"lib-name", []string{"CLIENT", "SETINFO", "LIB-NAME"}}, {"lib-ver", []string{"CLIENT", "SETINFO", "lib-ver"}},
	} {
		c.Expect(t, "-ERR "+test.what+tooLong, append(test.words, longest+"x")...)
		if reply := c.Do(t, append(test.words, longest)...); reply[0] == '-' {
			t.Errorf("%q: %q", test.words, reply)
		}
	}
	if n := len(c.Do(t, "CLIENT", "LIST")); n < 3*1024 || n > 4*1024 {
		t.Errorf("CLIENT LIST has %d bytes", n)
	}
}
