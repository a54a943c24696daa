package config

import (
	"net/url"
	"path/filepath"
	"strconv"
)

// Environ returns the connection as variables for a child process: those to set,
// and those of ours that would say something else. The client id is not among them,
// since two connections cannot share one; nor is --tls-insecure, which nobody
// inherits. Files are named by their absolute path.
func (s Settings) Environ() (set map[string]string, drops []string) {
	set = make(map[string]string)
	for _, row := range settings() {
		if row.child == drop {
			drops = append(drops, row.env)
		}
		if row.child != pass {
			continue
		}
		value := row.show(&s)
		switch {
		case row.flag == "url":
			value = s.fullURL()
		case row.isSwitch() && s.Sources[row.flag] != "":
			value = strconv.FormatBool(value == "true") // false was said too
		case row.isFile() && value != "":
			if abs, err := filepath.Abs(value); err == nil {
				value = abs
			}
		}
		if value == "" && !row.isSwitch() {
			drops = append(drops, row.env)
		} else if value != "" {
			set[row.env] = value
		}
	}
	set["SSCLI_CONTEXT"] = None // the chosen one, if any, is in the variables
	if s.Sources["proxy"] == "--proxy" && s.Proxy != nil {
		set["SSCLI_PROXY"] = s.Proxy.String() // a password cannot be in it
	}
	return set, drops
}

// fullURL is URL with the query of a WebSocket's path, which may hold a secret.
func (s Settings) fullURL() string {
	if s.Address == "" {
		return ""
	}
	plain := s
	plain.WebSocket = ""
	if s.WebSocket == "" {
		return plain.URL()
	}
	scheme := "ws"
	if s.TLS {
		scheme = "wss"
	}
	u := url.URL{Scheme: scheme, Host: s.Address}
	return u.String() + s.WebSocket
}
