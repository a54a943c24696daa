package serve

import (
	"context"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/accounts"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/process"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
)

const lastPackets = 500 * time.Millisecond

// runChild runs a command against the server. If the command fails, the error is a *[fault.ExitError]
// with its exit code. If the server has failed, runChild returns the server's error instead. control is the
// URL of the control port, or empty. The clients of the command end with it, and their DISCONNECTs may still
// be unread, so runChild returns when no client is connected, at most after lastPackets.
func runChild(a *app.App, server *emulator.Server, ready format.Serving, control string, args []string) error {
	err := fault.RunChild(process.Command{Args: args, Env: servedEnviron(a, server, ready, control)})
	ctx, cancel := context.WithTimeout(context.Background(), lastPackets)
	defer cancel()
	// An error means that a client remains, or that the server has ended.
	_ = server.Await(ctx, func(st emulator.State) bool { return st.Connections == 0 })
	if kept := server.Err(); kept != nil {
		return dataError(kept)
	}
	return err
}

// serving returns the result that shows how clients connect. token is the file of --sat-out.
func serving(a *app.App, f serveFlags, server *emulator.Server, token string) format.Serving {
	s := format.Serving{Op: "serve", URL: server.URL(), SATFile: token}
	switch {
	case f.selfSigned != "":
		s.CAFile = absolute(filepath.Join(string(f.selfSigned), "ca.crt"))
		if f.clientCA != "" {
			s.CertFile = absolute(filepath.Join(string(f.selfSigned), "client.crt"))
			s.KeyFile = absolute(filepath.Join(string(f.selfSigned), "client.key"))
		}
	case f.cert != "":
		s.CAFile = absolute(string(f.cert))
		if file, ok := a.Env("SSCLI_CA_FILE"); ok && file != "" {
			s.CAFile = file // the certificate may have been issued by this CA
		}
	}
	s.Paste = config.ExportURL(a.Env, s.URL)
	for _, v := range []struct{ name, file string }{
		{"SSCLI_CA_FILE", s.CAFile}, {"SSCLI_CERT_FILE", s.CertFile}, {"SSCLI_KEY_FILE", s.KeyFile}, {"SSCLI_SAT_FILE", s.SATFile},
	} {
		if v.file != "" {
			s.Paste = append(s.Paste, config.Export(v.name, v.file))
		}
	}
	s.Paste = append(s.Paste, f.firstCommand(s))
	return s
}

// firstCommand returns a command that works as a client's first: it logs in, if the server requires a login, or
// shows who may do what, if a policy decides.
func (f serveFlags) firstCommand(s format.Serving) string {
	users, err := accounts.ReadUsers(string(f.login.Users))
	switch {
	case len(f.login.Policy) > 0:
		return suggest.Run(append([]string{"sscli", "policy", "table"}, f.login.Policy...)...).String()
	case s.SATFile != "" || s.CertFile != "":
	case err == nil && len(users) > 0:
		return suggest.Run("sscli", "--username", slices.Min(slices.Collect(maps.Keys(users))), "--askpass", "set", "hello", "world").String()
	}
	return "sscli set hello world"
}

func absolute(name string) string {
	if path, err := filepath.Abs(name); err == nil {
		return path
	}
	return name
}

// servedEnviron returns an environment for CMD in which clients connect to the server.
func servedEnviron(a *app.App, server *emulator.Server, ready format.Serving, control string) []string {
	address := strings.SplitAfter(ready.URL, "://")[1]
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	set := map[string]string{
		"SSCLI_URL":            ready.URL,
		"AIO_BROKER_HOSTNAME":  host,
		"AIO_BROKER_TCP_PORT":  port,
		"AIO_MQTT_USE_TLS":     strconv.FormatBool(ready.CAFile != ""),
		"AIO_MQTT_CLEAN_START": "true",
		"SSCLI_CONTEXT":        config.None,
	}
	for _, v := range []struct{ ours, aio, file string }{
		{"SSCLI_CA_FILE", "AIO_TLS_CA_FILE", ready.CAFile}, {"SSCLI_CERT_FILE", "AIO_TLS_CERT_FILE", ready.CertFile},
		{"SSCLI_KEY_FILE", "AIO_TLS_KEY_FILE", ready.KeyFile}, {"SSCLI_SAT_FILE", "AIO_SAT_FILE", ready.SATFile},
	} {
		if v.file != "" {
			set[v.ours], set[v.aio] = v.file, v.file
		}
	}
	if url := server.WebSocketURL(); url != "" {
		set["SSCLI_WS_URL"] = url
	}
	if url := server.RedisURL(); url != "" {
		set["REDIS_URL"] = url
	}
	if control != "" {
		set["SSCLI_CONTROL_URL"] = control
	}
	// A lock of another store, its token, and its other ports mean nothing to clients of this one.
	drop := append(config.BesideURL(), verb.EnvLockName, verb.EnvOuterLocks, verb.HolderVariable, verb.EnvFence, verb.EnvFenceFile)
	if ready.SATFile != "" { // a token cannot be combined with another login
		drop = append(drop, "SSCLI_USERNAME", "SSCLI_PASSWORD_FILE", "AIO_MQTT_USERNAME", "AIO_MQTT_PASSWORD_FILE")
	}
	_, ours := a.Env("SSCLI_USERNAME")
	_, aio := a.Env("AIO_MQTT_USERNAME")
	if !ours && !aio { // without a user name, the password is for another broker
		drop = append(drop, "SSCLI_PASSWORD_FILE", "AIO_MQTT_PASSWORD_FILE")
	}
	if ready.CAFile == "" || ready.CertFile != "" { // the user's certificate is for another broker
		drop = append(drop, "SSCLI_CERT_FILE", "SSCLI_KEY_FILE", "SSCLI_KEY_PASSWORD_FILE",
			"AIO_TLS_CERT_FILE", "AIO_TLS_KEY_FILE", "AIO_TLS_KEY_PASSWORD_FILE")
	}
	return process.Environ(set, drop...)
}

// announce prints how clients connect, and the URLs of the other ports; an empty URL is no port.
func announce(a *app.App, ready format.Serving, urls ...string) error {
	err := a.Emit(ready)
	for _, url := range urls {
		if url != "" && err == nil {
			ready.URL, ready.Paste = url, nil
			err = a.Emit(ready)
		}
	}
	return err
}
