package config

import (
	"cmp"
	"net"
	"strconv"
	"strings"
)

// An Effective is a setting with its effective value.
type Effective struct {
	Flag, Value string
	Source      string // the flag, the variable, "context lab" or "default"
	File        string // the context file, if Source is a context; else empty
}

// Effective returns the settings that differ from their defaults, in the order of help, without
// secrets.
func (s Settings) Effective() []Effective {
	var out []Effective
	add := func(flag, value, source string) {
		e := Effective{Flag: flag, Value: value, Source: cmp.Or(source, "default")}
		if strings.HasPrefix(source, contextSource) {
			e.Source, e.File = from(source), s.ContextFile
		}
		out = append(out, e)
	}
	for _, row := range settings() {
		if value := row.show(&s); value != "" && row.flag != "yes" {
			add(row.flag, value, s.Sources[row.flag])
		}
		switch {
		case row.flag == "config" && s.Protected:
			add("protected", "true", contextSource+s.Context+": protected")
		case row.flag == "url" && s.Address != "" && s.Via == nil:
			add("url", s.URL(), s.Sources["host"])
		case row.flag == "tls" && s.Via != nil && !s.TLS:
			add("tls", "false", s.Sources["tls"])
		case (row.flag == "port" || row.flag == "tls") && s.Address != "" && from(s.Sources[row.flag]) != from(s.Sources["host"]):
			// The entry for url does not show the source of a port or TLS setting that comes from
			// elsewhere.
			value := strconv.FormatBool(s.TLS)
			if row.flag == "port" {
				_, value, _ = net.SplitHostPort(s.Address)
			}
			add(row.flag, value, s.Sources[row.flag])
		case row.flag == "client-id" && s.ClientIDPrefix != "":
			add("client-id", s.ClientIDPrefix+"- and random characters", "AIO_MQTT_CLIENT_ID")
		}
	}
	return out
}

// from returns a source without a context's key: "context lab" for "context lab: url".
func from(source string) string {
	name, _, _ := strings.Cut(source, ": ")
	return name
}
