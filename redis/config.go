package redis

import (
	"bytes"
	"slices"
	"strings"
)

// A setting is a parameter of CONFIG. Clients ask for some of Redis's that mean nothing here.
type setting struct{ name, value string }

const notifySetting = "notify-keyspace-events"

func (s *Server) settings() []setting {
	return []setting{
		{"appendonly", "no"},
		{"bind", "127.0.0.1"},
		{"cluster-enabled", "no"},
		{"databases", "1"},
		{"enable-debug-command", "no"},
		{"io-threads", "1"},
		{"latency-monitor-threshold", "0"},
		{"maxclients", "10000"},
		{"maxmemory", "0"},
		{"maxmemory-policy", "noeviction"},
		{notifySetting, class(s.flags.Load()).String()},
		{"proto-max-bulk-len", itoa(maxBulk)},
		{"save", ""},
		{"slowlog-log-slower-than", "-1"},
		{"tcp-keepalive", "300"},
		{"timeout", "0"},
	}
}

func runConfigGet(c *conn, args [][]byte) {
	var found []setting
	for _, st := range c.s.settings() {
		if slices.ContainsFunc(args[2:], func(p []byte) bool { return match(bytes.ToLower(p), []byte(st.name)) }) {
			found = append(found, st)
		}
	}
	c.mapping(len(found))
	for _, st := range found {
		c.text(st.name)
		c.text(st.value)
	}
}

// runConfigSet changes all or nothing.
func runConfigSet(c *conn, args [][]byte) {
	if len(args)%2 != 0 {
		c.error(textSyntax)
		return
	}
	settings := c.s.settings()
	flags, change := class(0), false
	seen := make(map[string]bool)
	for i := 2; i < len(args); i += 2 {
		name := strings.ToLower(string(args[i]))
		if !slices.ContainsFunc(settings, func(st setting) bool { return st.name == name }) {
			c.error("Unknown option or number of arguments for CONFIG SET - '" + string(args[i]) + "'")
			return
		}
		if seen[name] {
			c.refuseSetting(args[i], "duplicate parameter")
			return
		}
		seen[name] = true
	}
	for i := 2; i < len(args); i += 2 {
		name, value := strings.ToLower(string(args[i])), string(args[i+1])
		at := slices.IndexFunc(settings, func(st setting) bool { return st.name == name })
		refused := ""
		if name != notifySetting {
			if value != settings[at].value {
				refused = "can't set immutable config"
			}
		} else if f, ok := parseClasses(value); !ok {
			refused = textFlags
		} else if c.s.engine == nil && f&(misses|created) != 0 {
			c.error(textRemoteFlags)
			return
		} else {
			flags, change = f, true
		}
		if refused != "" {
			c.refuseSetting(args[i], refused)
			return
		}
	}
	if change {
		c.s.flags.Store(uint32(flags))
	}
	c.ok()
}

func (c *conn) refuseSetting(name []byte, why string) {
	c.error("CONFIG SET failed (possibly related to argument '" + string(name) + "') - " + why)
}

// runConfigRewrite says what Redis says without a file.
func runConfigRewrite(c *conn, _ [][]byte) {
	c.error("The server is running without a config file")
}

func runConfigResetStat(c *conn, _ [][]byte) {
	c.s.commands.Store(0)
	c.s.connections.Store(0)
	c.s.expired.Store(0)
	c.ok()
}
