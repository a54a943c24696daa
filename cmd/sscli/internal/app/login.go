package app

import (
	"cmp"
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/via"
	"github.com/sscli/sscli/format"
)

// describeLogin adds details to two kinds of errors, and returns other errors unchanged. To a refused login it
// adds the credentials that were sent and, in most cases, a hint; to an error about the broker's certificate,
// what sscli trusts. canAsk means that sscli can ask the user for a password.
func describeLogin(err error, s config.Settings, canAsk bool) error {
	f, _ := fault.Of(err)
	switch f.Kind {
	case "login", "connect_denied", "auth_method", "refused_login", "reauth", "token_expired":
	case "certificate_authority":
		if s.CAFile != "" {
			err = &fault.NextError{
				Err:  &fault.DetailError{Err: err, Details: []string{"the trusted CAs are those in " + format.Path(s.CAFile)}},
				Hint: suggest.Try("another `--ca-file`, with the certificate of the broker's CA"),
			}
		}
		return err
	case "certificate_name":
		if wrong, ok := errors.AsType[x509.HostnameError](err); ok && fault.NamesAddressAsDNS(wrong) {
			err = &fault.NextError{Err: err, Hint: suggest.Say("the broker needs a certificate with the address " + wrong.Host + " as an IP address, not as a DNS name")}
		}
		return err
	case "client_certificate_refused":
		return withSent(err, sentCertificate(s))
	default:
		return err
	}
	if s.Embedded {
		return err
	}
	sent := sentLogin(s, time.Now())
	hints := f.Kind != "refused_login"
	if f.Kind == "connect_denied" { // the login comes before the rules, and a broker may answer a wrong token so
		hints = sent == noLogin || s.SATFile != "" || s.ClusterAccount() != ""
		sent += ", as " + sentClientID(s)
	}
	err = withSent(err, sent)
	if hints {
		err = &fault.NextError{Err: err, Hint: loginHint(s, canAsk)}
	}
	return err
}

// withSent adds to the error of a refused login what was sent.
func withSent(err error, sent string) error {
	return &fault.DetailError{Err: err, Details: []string{"sent: " + sent}}
}

const noLogin = "no user name, no token and no certificate"

// sentLogin describes the credentials that are sent: a token, or the user and the source of the
// password, and the client certificate. The text contains no secret.
func sentLogin(s config.Settings, now time.Time) string {
	var sent []string
	switch {
	case s.SATFile != "":
		sent = append(sent, "the service-account token in "+format.Path(s.SATFile)+tokenAge(s.SATFile, now))
	case s.ClusterAccount() != "":
		sent = append(sent, "a new token of the service account "+s.ClusterAccount()+" for the audience "+via.Audience)
	case s.Username != "":
		sent = append(sent, "user "+format.Brief(s.Username)+" with "+password(s))
	}
	if text := sentCertificate(s); text != "" {
		sent = append(sent, text)
	}
	if len(sent) == 0 {
		return noLogin
	}
	return strings.Join(sent, ", and ")
}

func sentClientID(s config.Settings) string {
	if s.ClientID != "" {
		return "client " + format.Brief(s.ClientID)
	}
	return "a client with the random id " + format.Brief(cmp.Or(s.ClientIDPrefix, "sscli")+"-…")
}

func password(s config.Settings) string {
	switch {
	case s.AskPass:
		return "the password that was typed"
	case s.PasswordFile != "":
		return "the password in " + format.Path(s.PasswordFile)
	}
	return "no password"
}

// tokenAge returns a text that says when the token in a file was issued and when it expires. It
// omits a time that the token does not contain.
func tokenAge(file string, now time.Time) string {
	token, err := client.ReadToken(file)
	if err != nil {
		return ""
	}
	var parts []string
	issued, expires := client.TokenTimes(token)
	if !issued.IsZero() {
		parts = append(parts, "issued "+format.Age(now.Sub(issued)))
	}
	switch {
	case expires.IsZero():
	case expires.Before(now):
		parts = append(parts, "expired "+format.Age(now.Sub(expires)))
	default:
		parts = append(parts, "expires "+format.Age(now.Sub(expires)))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// sentCertificate returns a text that names the client certificate, or "" if there is none.
func sentCertificate(s config.Settings) string {
	if !s.TLS || s.CertFile == "" {
		return ""
	}
	text := "the client certificate in " + format.Path(s.CertFile)
	c, err := certs.Certificate(s.CertFile)
	if err != nil {
		return text
	}
	text += " of " + format.Quote(c.Subject.String())
	if time.Now().After(c.NotAfter) {
		text += ", which expired at " + c.NotAfter.UTC().Format(time.RFC3339)
	}
	return text
}

// loginHint returns the hint for a refused login. It omits flags that cannot be combined with the
// settings.
func loginHint(s config.Settings, canAsk bool) suggest.Hint {
	certificate := "; or `--cert-file with --key-file`"
	if !s.TLS || s.CertFile != "" {
		certificate = ""
	}
	password := "--password-file`"
	if canAsk {
		password = "--askpass` or `--password-file`"
	}
	anonymous := ""
	if s.TLS && s.CertFile != "" {
		anonymous = "or no user name, if the certificate is the login"
	}
	switch {
	case s.SATFile != "":
		return suggest.Try("write a token that the broker accepts to `FILE`; kubectl create token prints one, with the broker's audience").Fill(suggest.File, s.SATFile)
	case s.ClusterAccount() != "":
		return suggest.Try("the broker must accept tokens of the cluster for the audience " + via.Audience + "; `--via-service-account` with another account, or `--sat-file` with a token for another audience")
	case s.Username != "" && s.PasswordFile == "" && !s.AskPass:
		return append(suggest.Try("`"+password+" with the password of ").Then(format.Brief(s.Username)), suggest.Try(anonymous)...)
	case s.Username != "":
		return append(suggest.Try("check the user name and the password; or in place of both `--sat-file`"+certificate), suggest.Try(anonymous)...)
	}
	return suggest.Try("`--username with " + password + "; or `--sat-file`" + certificate)
}
