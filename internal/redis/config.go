package redis

import (
	"bytes"
)

// A setting is a parameter of CONFIG. Most settings have no effect; they exist because clients ask for
// them.
type setting struct{ name, value string }

const notifySetting = "notify-keyspace-events"

// settings returns the parameters of CONFIG. Only notifySetting can be changed.
func (s *Server) settings() []setting {
	return []setting{
		{"appendonly", "no"},
		{"bind", "127.0.0.1"},
		{"cluster-enabled", "no"},
		{"databases", "1"},
		{"enable-debug-command", "no"},
		{"io-threads", "1"},
		{"latency-monitor-threshold", "0"},
		{"maxclients", itoa(maxClients)},
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

func runConfigGet(c *conn, args [][]byte) error {
	if err := patternArgs(args[2:]...); err != nil {
		return err
	}
	settings := c.s.settings()
	matched := make([]bool, len(settings))
	for _, text := range args[2:] {
		p := parsePattern(bytes.ToLower(text)) // only one at a time, because a pattern takes much memory
		for i, st := range settings {
			matched[i] = matched[i] || p.match([]byte(st.name))
		}
	}
	found := pairs{}
	for i, st := range settings {
		if matched[i] {
			found = append(found, st.name, st.value)
		}
	}
	return c.reply(found)
}

// runConfigSet sets either all given parameters or none.
func runConfigSet(c *conn, args [][]byte) error {
	if len(args)%2 != 0 {
		return errSyntax
	}
	values := make(map[string]string)
	for _, st := range c.s.settings() {
		values[st.name] = st.value
	}
	seen := make(map[string]bool)
	for i := 2; i < len(args); i += 2 {
		name := lowerWord(args[i])
		if _, known := values[name]; !known {
			return &Error{Text: "Unknown option or number of arguments for CONFIG SET - '" + printable(args[i], maxShown) + "'"}
		}
		if seen[name] {
			return wrongSetting(args[i], "duplicate parameter")
		}
		seen[name] = true
	}
	flags := class(c.s.flags.Load())
	for i := 2; i < len(args); i += 2 {
		name, value := lowerWord(args[i]), args[i+1]
		if name != notifySetting {
			if string(value) != values[name] {
				return wrongSetting(args[i], "can't set immutable config")
			}
			continue
		}
		ok := len(value) <= maxWord // more than there are letters
		if ok {
			flags, ok = parseClasses(string(value))
		}
		if !ok {
			return wrongSetting(args[i], "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
		}
		if err := c.s.checkClasses(flags); err != nil {
			return err
		}
	}
	c.s.flags.Store(uint32(flags))
	return c.reply(replyOK)
}

// checkClasses returns an error if flags contains a class of events that the store does not report. A
// Local reports all classes; a remote store does not report classMiss and classNew.
func (s *Server) checkClasses(flags class) error {
	if s.local == nil && flags&(classMiss|classNew) != 0 {
		return errRemoteEvents
	}
	return nil
}

func wrongSetting(name []byte, why string) error {
	return &Error{Text: "CONFIG SET failed (possibly related to argument '" + string(name) + "') - " + why}
}

// runConfigRewrite returns the error of a Redis server that was started without a configuration file.
func runConfigRewrite(*conn, [][]byte) error {
	return &Error{Text: "The server is running without a config file"}
}

func runConfigResetStat(c *conn, _ [][]byte) error {
	c.s.commands.Store(0)
	c.s.connections.Store(0)
	c.s.expired.Store(0)
	return c.reply(replyOK)
}

// ResetNotify sets notify-keyspace-events to its value at the start.
func (s *Server) ResetNotify() {
	flags, _ := parseClasses(s.opts.Notify)
	s.flags.Store(uint32(flags))
}
