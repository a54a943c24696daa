package doctor

import (
	"bytes"
	"context"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// configuration shows the settings and their sources. It warns if the server is not verified, or if
// the login is sent in plain text.
func (c *checkup) configuration(context.Context) error {
	s := c.a.Settings
	check := format.Check{Name: "configuration", Status: format.Pass, Message: "an emulator inside this process (--embedded)"}
	if !s.Embedded {
		check.Message = s.URL()
	}
	if s.Via != nil {
		check.Message = s.Via.String()
	}
	for _, e := range s.Effective() {
		check.Facts = append(check.Facts, format.Fact{Name: e.Flag, Value: e.Value, Source: e.Source})
	}
	if c.o.TokenFile != "" {
		if token, err := files.ReadFile(c.o.TokenFile, files.MaxText); err == nil { // the connect check reports the error
			if _, expires := client.TokenTimes(bytes.TrimSpace(token)); !expires.IsZero() {
				check.Facts = append(check.Facts, format.Fact{Name: "token expires", Value: expires.UTC().Format(time.RFC3339)})
			}
		}
	}
	loopback, _ := config.IsLoopback(c.o.Address) // the connect check reports the error
	switch secret := c.o.Password != nil || c.o.TokenFile != ""; {
	case s.Insecure:
		check.Status = format.Warn
		check.Message += ": with --tls-insecure any server can pose as the broker"
		check.Hint = "use --ca-file with the certificate of the broker's CA"
	case secret && !s.TLS && !loopback && s.Via == nil:
		check.Status = format.Warn
		check.Message += ": the login is sent over the network in plain text"
		check.Hint = "use --tls, with the broker's port for TLS (8883)"
	}
	return c.print(check)
}
