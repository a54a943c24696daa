package config

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/sscli/sscli/format"
)

// Environ returns the connection as environment variables for a child process: the variables to set,
// and the variables to drop because they would contradict the others. The child gets neither the client
// id, which two connections cannot share, nor --tls-insecure. File names are absolute.
func (s Settings) Environ() (set map[string]string, drops []string) {
	set = make(map[string]string)
	for _, row := range settings() {
		if row.child == drop {
			drops = append(drops, row.env)
		}
		fromContext := row.inContext() && s.Sources[row.flag].Context != ""
		if row.child != pass && (row.child == drop || row.env == "" || !fromContext) {
			continue
		}
		value := row.show(&s)
		switch {
		case row.flag == "url" && s.Via == nil:
			value = s.fullURL()
		case row.isSwitch() && s.Sources[row.flag] != (Source{}):
			value = strconv.FormatBool(value == "true") // pass on an explicit false too
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
	if s.Via != nil && !s.TLS {
		set["SSCLI_TLS"] = "false"
	}
	set["SSCLI_CONTEXT"] = None // the variables already hold the context's values
	switch source := s.Sources["proxy"]; {
	case s.Proxy == nil:
		drops = append(drops, "SSCLI_PROXY") // with --via, it was not used
	case source.Flag != "" || source.Context != "":
		set["SSCLI_PROXY"] = s.Proxy.String() // has no password: neither a flag nor a context may have one
	}
	if s.Sources["host"].Env == "" {
		drops = append(drops, otherPorts()...) // the environment describes another broker than this one
	}
	return set, drops
}

// BesideURL returns the variables that contradict SSCLI_URL if it names another broker than they were set for.
func BesideURL() []string {
	return append(otherPorts(), "SSCLI_HOST", "SSCLI_PORT", "SSCLI_TLS", "SSCLI_TLS_SERVER_NAME", "SSCLI_EMBEDDED", "SSCLI_VIA", "SSCLI_PROXY")
}

// otherPorts returns the variables with the URLs of a server's other ports. REDIS_URL is not one of them, because
// it may name a Redis server of the application.
func otherPorts() []string { return []string{"SSCLI_WS_URL", "SSCLI_CONTROL_URL"} }

// ExportURL returns the lines that set SSCLI_URL in the user's shell: see [Export]. They first unset what
// is set of BesideURL.
func ExportURL(env func(string) (string, bool), url string) (lines []string) {
	for _, name := range BesideURL() {
		if value, _ := env(name); value != "" {
			lines = append(lines, Export(name, ""))
		}
	}
	return append(lines, Export("SSCLI_URL", url))
}

// Export returns a line that sets an environment variable in the user's shell: in the syntax of
// PowerShell on Windows, and of sh(1) elsewhere. An empty value unsets the variable.
func Export(name, value string) string {
	switch {
	case runtime.GOOS == "windows":
		return "$env:" + name + " = '" + strings.ReplaceAll(value, "'", "''") + "'"
	case value == "":
		return "unset " + name
	}
	return "export " + name + "=" + format.ShWord(value)
}
