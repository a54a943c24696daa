package redis

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// redisVersion is the version whose behavior this is.
const redisVersion = "7.0.15"

func serverCommands() []*command {
	const flags = noScript | loadingOK | staleOK
	sub := func(name string, arity int, f flag, since, args, summary string, run func(*conn, [][]byte)) *command {
		return &command{name: name, arity: arity, flags: f, run: run, since: since, args: args, summary: summary, group: "server"}
	}
	rows := []*command{
		{name: "info", arity: -1, flags: loadingOK | staleOK | usesStore, run: runInfo, since: "1.0.0", args: "[section:string...]", summary: "Get information and statistics about the server"},
		{name: "time", arity: 1, flags: loadingOK | staleOK | fast | usesStore, run: runTime, since: "2.6.0", summary: "Return the current server time"},
		{name: "role", arity: 1, flags: noScript | loadingOK | staleOK | fast, run: runRole, since: "2.8.12", summary: "Return the role in replication, which is master"},
		{name: "wait", arity: 3, flags: noScript, run: runWait, since: "3.0.0", args: "numreplicas:integer timeout:integer", summary: "Return the number of replicas, which is 0"},
		{name: "lolwut", arity: -1, flags: reads | fast, run: runLolwut, since: "5.0.0", args: "[version:integer]", summary: "Display the version"},
		{name: "config", arity: -2, since: "2.0.0", summary: "A container for server configuration commands", subs: []*command{
			sub("get", -3, flags|admin, "2.0.0", "parameter:string...", "Get the values of configuration parameters", runConfigGet),
			sub("set", -4, flags|admin, "2.0.0", "parameter:string value:string...", "Set configuration parameters to the given values", runConfigSet),
			sub("resetstat", 2, flags|admin, "2.0.0", "", "Reset the stats returned by INFO", runConfigResetStat),
			sub("rewrite", 2, flags|admin, "2.8.0", "", "Rewrite the configuration file, which there is not", runConfigRewrite),
			configHelp(),
		}},
		{name: "command", arity: -1, flags: loadingOK | staleOK, run: runCommand, since: "2.8.13", summary: "Get array of Redis command details", subs: []*command{
			sub("count", 2, loadingOK|staleOK, "2.8.13", "", "Get total number of Redis commands", runCommandCount),
			sub("info", -2, loadingOK|staleOK, "2.8.13", "[command-name:string...]", "Get array of specific Redis command details", runCommandInfo),
			sub("list", -2, loadingOK|staleOK, "7.0.0", "[filterby:string]", "Get an array of Redis command names", runCommandList),
			sub("docs", -2, loadingOK|staleOK, "7.0.0", "[command-name:string...]", "Get array of specific Redis command documentation", runCommandDocs),
			sub("getkeys", -4, loadingOK|staleOK, "2.8.13", "command:string [arg:string...]", "Extract keys given a full Redis command", runCommandGetKeys),
			commandHelp(),
		}},
	}
	for _, cmd := range rows {
		cmd.group = "server"
	}
	return rows
}

// section is a part of INFO.
type section struct {
	name  string
	lines func(c *conn) []string
}

func sections() []section {
	return []section{
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
		{"Cluster", func(*conn) []string { return []string{"cluster_enabled:0"} }},
		{"Keyspace", (*conn).infoKeyspace},
	}
}

func runInfo(c *conn, args [][]byte) {
	var wanted []string
	for _, a := range args[1:] {
		wanted = append(wanted, strings.ToLower(string(a)))
	}
	everything := len(wanted) == 0 || slices.ContainsFunc(wanted, func(w string) bool { return w == "all" || w == "default" || w == "everything" })
	var out strings.Builder
	for _, sec := range sections() {
		if !everything && !slices.Contains(wanted, strings.ToLower(sec.name)) {
			continue
		}
		if out.Len() > 0 {
			out.WriteString("\r\n")
		}
		out.WriteString("# " + sec.name + "\r\n")
		for _, line := range sec.lines(c) {
			out.WriteString(line + "\r\n")
		}
	}
	c.verbatim(out.String())
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
	subscribers := 0
	for of := range c.s.conns {
		if of.subscriptions() > 0 {
			subscribers++
		}
	}
	return []string{"connected_clients:" + strconv.Itoa(len(c.s.conns)), "maxclients:10000", "blocked_clients:0", "pubsub_clients:" + strconv.Itoa(subscribers)}
}

func infoMemory(*conn) []string {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return []string{"used_memory:" + strconv.FormatUint(m.HeapAlloc, 10), "used_memory_human:" + fmt.Sprintf("%.2fM", float64(m.HeapAlloc)/(1<<20)), "maxmemory:0", "maxmemory_policy:noeviction", "mem_allocator:go"}
}

func (c *conn) infoStats() []string {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return []string{
		"total_connections_received:" + itoa(c.s.connections.Load()), "total_commands_processed:" + itoa(c.s.commands.Load()),
		"expired_keys:" + itoa(c.s.expired.Load()), "evicted_keys:0",
		"pubsub_channels:" + strconv.Itoa(len(c.s.channels.subscribers)), "pubsub_patterns:" + strconv.Itoa(len(c.s.patterns.subscribers)),
	}
}

func (c *conn) infoKeyspace() []string {
	if c.s.engine == nil || c.s.engine.Len() == 0 {
		return nil
	}
	return []string{"db0:keys=" + strconv.Itoa(c.s.engine.Len()) + ",expires=" + strconv.Itoa(c.s.engine.Expiring()) + ",avg_ttl=0"}
}

func runRole(c *conn, _ [][]byte) {
	c.array(3)
	c.text("master")
	c.integer(0) // offset
	c.array(0)   // replicas
}

// runWait does not wait: there will be no replicas.
func runWait(c *conn, args [][]byte) {
	if _, ok := c.integerArg(args[1]); !ok {
		return
	}
	switch timeout, ok := parseInt(args[2]); {
	case !ok:
		c.error("timeout is not an integer or out of range")
	case timeout < 0:
		c.error("timeout is negative")
	default:
		c.integer(0)
	}
}

func runTime(c *conn, _ [][]byte) {
	now := time.Now()
	if c.s.engine != nil {
		now = c.s.engine.Now()
	}
	us := now.UnixMicro()
	c.array(2)
	c.text(itoa(us / 1e6))
	c.text(itoa(us % 1e6))
}

func runLolwut(c *conn, _ [][]byte) { c.verbatim("Redis ver. " + redisVersion + "\n") }
