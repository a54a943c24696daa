package redis

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// redisVersion is the version of Redis that this server behaves like.
const redisVersion = "7.0.15"

func infoCommands() []*command {
	const (
		always   = loadingOK | staleOK
		settings = noScript | always | admin
	)
	return []*command{
		{name: "info", arity: -1, looks: 100, flags: always | usesStore, run: runInfo, since: "1.0.0", args: "[section:string...]", summary: "Get information and statistics about the server"},
		{name: "time", arity: 1, flags: always | fast | usesStore, run: runTime, since: "2.6.0", summary: "Return the current server time"},
		{name: "role", arity: 1, flags: noScript | always | fast, run: runRole, since: "2.8.12", summary: "Return the role in replication, which is master"},
		{name: "wait", arity: 3, flags: noScript, run: runWait, since: "3.0.0", args: "numreplicas:integer timeout:integer", summary: "Return the number of replicas, which is 0"},
		{name: "lolwut", arity: -1, flags: reads | fast, run: runLolwut, since: "5.0.0", args: "[version:integer]", summary: "Display the version"},
		{name: "config", arity: -2, since: "2.0.0", summary: "A container for server configuration commands", subs: []*command{
			{name: "get", arity: -3, looks: 100, flags: settings, run: runConfigGet, since: "2.0.0", args: "parameter:string...", summary: "Get the values of configuration parameters"},
			{name: "set", arity: -4, flags: settings | needsAll, run: runConfigSet, since: "2.0.0", args: "parameter:string value:string...", summary: "Set configuration parameters to the given values"},
			{name: "resetstat", arity: 2, flags: settings | needsAll, run: runConfigResetStat, since: "2.0.0", summary: "Reset the stats returned by INFO"},
			{name: "rewrite", arity: 2, flags: settings, run: runConfigRewrite, since: "2.8.0", summary: "Rewrite the configuration file, which there is not"},
			help("config"),
		}},
		{name: "command", arity: -1, looks: 500, flags: always, run: runCommand, since: "2.8.13", summary: "Get array of Redis command details", subs: []*command{
			{name: "count", arity: 2, flags: always, run: runCommandCount, since: "2.8.13", summary: "Get total number of Redis commands"},
			{name: "info", arity: -2, looks: 500, flags: always, run: runCommandInfo, since: "2.8.13", args: "[command-name:string...]", summary: "Get array of specific Redis command details"},
			{name: "list", arity: -2, looks: 100, flags: always, run: runCommandList, since: "7.0.0", args: "[filterby:string]", summary: "Get an array of Redis command names"},
			{name: "docs", arity: -2, looks: 500, flags: always, run: runCommandDocs, since: "7.0.0", args: "[command-name:string...]", summary: "Get array of specific Redis command documentation"},
			{name: "getkeys", arity: -4, flags: always, run: runCommandGetKeys, since: "2.8.13", args: "command:string [arg:string...]", summary: "Extract keys given a full Redis command"},
			help("command"),
		}},
	}
}

// sections holds the parts of the reply to INFO, in order.
var sections = []struct {
	name  string
	lines func(c *conn) []string
}{
	{"Server", (*conn).infoServer},
	{"Clients", (*conn).infoClients},
	{"Memory", infoMemory},
	{"Persistence", func(*conn) []string {
		return []string{"loading:0", "async_loading:0", "rdb_changes_since_last_save:0", "rdb_bgsave_in_progress:0", "aof_enabled:0", "aof_rewrite_in_progress:0"}
	}},
	{"Stats", (*conn).infoStats},
	{"Replication", func(*conn) []string {
		return []string{"role:master", "connected_slaves:0", "master_failover_state:no-failover", "master_repl_offset:0", "repl_backlog_active:0"}
	}},
	{"CPU", infoCPU},
	{"Cluster", func(*conn) []string { return []string{"cluster_enabled:0"} }},
	{"Keyspace", (*conn).infoKeyspace},
}

func runInfo(c *conn, args [][]byte) error {
	if err := c.lookAtClients(); err != nil {
		return err
	}
	everything := len(args) == 1
	wanted := make(map[string]bool) // names of sections
	for i, a := range args[1:] {
		if i%64 == 63 {
			c.letOthersIn()
		}
		for _, sec := range sections {
			if bytes.EqualFold(a, []byte(sec.name)) {
				wanted[sec.name] = true
			}
		}
		everything = everything || equalFold(a, "all") || equalFold(a, "default") || equalFold(a, "everything")
	}
	var parts []string
	for _, sec := range sections {
		if everything || wanted[sec.name] {
			lines := append([]string{"# " + sec.name}, sec.lines(c)...)
			parts = append(parts, strings.Join(lines, "\r\n")+"\r\n")
		}
	}
	c.verbatim(strings.Join(parts, "\r\n"))
	return nil
}

func (c *conn) infoServer() []string {
	port := "0"
	if a := address(c.nc.LocalAddr()); strings.Contains(a, ":") {
		port = a[strings.LastIndexByte(a, ':')+1:]
	}
	up := int64(time.Since(c.s.started).Seconds())
	return []string{
		"redis_version:" + redisVersion, "redis_git_sha1:00000000", "redis_git_dirty:0", "redis_build_id:0", "redis_mode:standalone", "statestore_backend:" + c.s.opts.Name,
		"os:" + runtime.GOOS + " " + runtime.GOARCH, "arch_bits:" + strconv.Itoa(strconv.IntSize), "process_id:" + strconv.Itoa(os.Getpid()),
		"run_id:" + c.s.runID, "tcp_port:" + port, "uptime_in_seconds:" + itoa(up), "uptime_in_days:" + itoa(up/(24*60*60)),
	}
}

func (c *conn) infoClients() []string {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	subscribers := c.s.clients(func(of *conn) bool { return of.subscriptions() > 0 })
	return []string{"connected_clients:" + strconv.Itoa(len(c.s.conns)), "maxclients:" + itoa(maxClients), "blocked_clients:0", "pubsub_clients:" + strconv.Itoa(len(subscribers))}
}

func infoMemory(*conn) []string {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return []string{"used_memory:" + strconv.FormatUint(m.HeapAlloc, 10), fmt.Sprintf("used_memory_human:%.2fM", float64(m.HeapAlloc)/(1<<20)), "maxmemory:0", "maxmemory_policy:noeviction", "mem_allocator:go"}
}

func infoCPU(*conn) []string {
	system, user := cpuTimes()
	return []string{fmt.Sprintf("used_cpu_sys:%f", system.Seconds()), fmt.Sprintf("used_cpu_user:%f", user.Seconds())}
}

func (c *conn) infoStats() []string {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return []string{
		"total_connections_received:" + itoa(c.s.connections.Load()), "total_commands_processed:" + itoa(c.s.commands.Load()),
		"expired_keys:" + itoa(c.s.expired.Load()), "evicted_keys:0",
		"pubsub_channels:" + strconv.Itoa(len(c.s.rosters[ofChannels].subscribers.M)), "pubsub_patterns:" + strconv.Itoa(len(c.s.rosters[ofPatterns].subscribers.M)),
	}
}

func (c *conn) infoKeyspace() []string {
	if c.s.local == nil {
		return nil
	}
	stats := c.s.local.Stats()
	if stats.Keys == 0 || stats.Hidden && !c.mayAll() {
		return nil
	}
	return []string{fmt.Sprintf("db0:keys=%d,expires=%d,avg_ttl=0", stats.Keys, stats.Expiring)}
}

func runRole(c *conn, _ [][]byte) error {
	offset, replicas := 0, []any{}
	return c.reply([]any{"master", offset, replicas})
}

// runWait replies immediately, because there are no replicas.
func runWait(c *conn, args [][]byte) error {
	if _, err := integerArg(args[1]); err != nil {
		return err
	}
	switch timeout, ok := parseInt(args[2]); {
	case !ok:
		return &Error{Text: "timeout is not an integer or out of range"}
	case timeout < 0:
		return &Error{Text: "timeout is negative"}
	}
	return c.reply(0)
}

func runTime(c *conn, _ [][]byte) error {
	us := c.time().UnixMicro()
	return c.reply([]string{itoa(us / 1e6), itoa(us % 1e6)})
}

func runLolwut(c *conn, _ [][]byte) error {
	c.verbatim("Redis ver. " + redisVersion + "\n")
	return nil
}
