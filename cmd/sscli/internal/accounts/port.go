package accounts

import (
	"crypto/tls"
	"fmt"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// Port holds the values of the flags --tls-cert, --tls-key and --tls-client-ca: PEM files for TLS on a port.
type Port struct{ Cert, Key, ClientCA config.File }

// TLS returns the TLS configuration of the port, or nil for plain TCP. warn is called for damaged certificates in
// ClientCA, which are skipped.
func (p Port) TLS(warn func(string)) (*tls.Config, error) {
	switch {
	case (p.Cert == "") != (p.Key == ""):
		return nil, fault.Usagef("--tls-cert and --tls-key must be used together")
	case p.Cert == "" && p.ClientCA != "":
		return nil, fault.Usagef("--tls-client-ca requires --tls-cert and --tls-key")
	case p.Cert == "":
		return nil, nil
	}
	pair, err := certs.ReadPair(string(p.Cert), string(p.Key))
	if err != nil {
		return nil, fault.Usagef("--tls-cert, --tls-key: %w", err)
	}
	c, err := certs.ServerTLS(pair, string(p.ClientCA), warn)
	if err != nil {
		return nil, fault.Usagef("--tls-client-ca: %w", err)
	}
	return c, nil
}

// WarnExposed warns of a file with secrets that users other than its owner may read or write.
func WarnExposed(a *app.App, flag, file string) {
	if may := files.Exposed(file); may != "" {
		a.Advise(fmt.Sprintf("%s %s: other users can %s this file", flag, format.Path(file), may), suggest.Run("chmod", "600", file))
	}
}

// Exposed returns the usage error for an address that other machines reach and that requires no login. what says
// what anybody could do there, and hint how to prevent or allow it.
func Exposed(flag, address, what, hint string) error {
	return &fault.UsageError{Err: fmt.Errorf("%s %s: %s", flag, address, what), Hint: suggest.Try(hint)}
}
