package fault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/via"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// Message returns the error in one line: what sscli did, and why it did not work. It says
// "timed out" for an expired context, and names the certificate that does not verify.
func Message(err error) string {
	message, details := describe(err)
	return format.Fault{Message: message, Details: details}.Text()
}

// describe returns the [Message] of an error and, apart from it, the details that a short form leaves out.
func describe(err error) (message string, details []string) {
	switch e := err.(type) {
	case *requestError:
		message, details = describe(e.err)
		return e.what() + ": " + message, details
	case *keyError:
		return describe(e.err)
	case *NextError:
		return describe(e.Err)
	case *DetailError:
		message, details = describe(e.Err)
		return message, append(details, e.Details...)
	case *CauseError:
		message, details = describe(e.Err)
		return e.What, append([]string{message}, details...)
	case *ProtectedError:
		if e.Refused {
			return e.describe(), nil // the question has shown them
		}
		return e.describe(), slices.Clone(e.Details)
	case *NotAppliedError:
		message, details = noAnswer(e.Err, e.Within)
		return "the write was not applied: " + message, details
	case *UnknownError:
		if e.Why == "" {
			return describe(e.Err)
		}
		message, details = noAnswer(e.Err, e.Within)
		return "unknown if it was applied: " + message, append(details, e.Why)
	case *mqtt.DialError:
		return describeDial(e)
	case *net.DNSError:
		if IsTimeout(e) {
			return "timed out", nil
		}
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			text := err.Error()
			if !strings.Contains(text, inner.Error()) {
				return text, nil // it says in its own words what inner says
			}
			message, details = describe(inner)
			return reword(text, inner, message), details
		}
	case interface{ Unwrap() []error }:
		all := e.Unwrap()
		if len(all) == 1 && all[0].Error() == err.Error() { // as of errors.Join with nothing else
			return describe(all[0])
		}
		message = err.Error()
		for _, inner := range all {
			message = reword(message, inner, Message(inner))
		}
		return message, nil
	}
	if IsTimeout(err) {
		return strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(), "timed out"), nil
	}
	return err.Error(), nil
}

// noAnswer describes why a request got no usable reply. within is how long sscli waited; 0 = not known.
func noAnswer(err error, within time.Duration) (message string, details []string) {
	if (err == context.DeadlineExceeded || err == client.ErrNoReply) && within > 0 {
		return fmt.Sprintf("no reply within %v (--timeout)", within), nil
	}
	return describe(err)
}

// reword replaces the text of inner, the reason of the error whose text is given. The reason comes last: a key of the
// same words may stand before it.
func reword(text string, inner error, words string) string {
	reason := inner.Error()
	if i := strings.LastIndex(text, reason); i >= 0 {
		return text[:i] + words + text[i+len(reason):]
	}
	return text
}

// describeDial is like describe, for an error from connecting. It leaves out the stage if the reason says what did not
// work: kubectl, or the subscription to a topic.
func describeDial(dial *mqtt.DialError) (message string, details []string) {
	if IsTimeout(dial) {
		return reword(dial.Error(), dial.Err, Message(dial.Err)), nil
	}
	if e, ok := errors.AsType[*via.Error](dial.Err); ok {
		return e.Error(), nil
	}
	if e, ok := errors.AsType[*mqtt.ReasonError](dial.Err); ok && e.Topic != "" {
		return e.Error(), nil
	}
	text, inner := dial.Error(), dial.Err
	if proxy, ok := errors.AsType[*mqtt.ProxyError](inner); ok && proxy.Err != nil {
		inner = proxy.Err
	}
	if certificate, ok := errors.AsType[*mqtt.ClientCertificateError](inner); ok {
		if inner = certificate.Err; certificate.Unfit != nil {
			text, details = reword(text, certificate, certificate.Brief()), []string{certificate.Unfit.Error()}
		}
	}
	why := inner.Error()
	if op, ok := errors.AsType[*net.OpError](inner); ok {
		why = op.Err.Error() // without the address, which the message contains already
	}
	if dns, ok := errors.AsType[*net.DNSError](inner); ok {
		why = dns.Err
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](inner); ok {
		why, details = certificateWords(e, time.Now())
	}
	return reword(text, inner, why), details
}

// certificateWords returns the reason why the verification of a certificate failed, and details. If the error has
// the certificate, the text includes its name and issuer.
func certificateWords(e *tls.CertificateVerificationError, now time.Time) (why string, known []string) {
	why = strings.TrimPrefix(e.Err.Error(), "x509: ")
	if len(e.UnverifiedCertificates) == 0 {
		return why, nil
	}
	c := e.UnverifiedCertificates[0]
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](e.Err); ok && invalid.Cert != nil {
		c = invalid.Cert
		if invalid.Reason == x509.Expired {
			why, known = timeWords(c, now), []string{"local time " + now.UTC().Format(time.RFC3339)}
		}
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](e.Err); ok && invalid.Reason == x509.IncompatibleUsage {
		why, known = "not for servers", []string{"its extended key usage has no server authentication"}
	}
	if wrong, ok := errors.AsType[x509.HostnameError](e.Err); ok {
		why = fmt.Sprintf("issued for %s, not for %s", nameWords(c), wrong.Host)
		if NamesAddressAsDNS(wrong) {
			why = fmt.Sprintf("names %s as a DNS name, and must name it as an IP address", wrong.Host)
		}
	}
	last := e.UnverifiedCertificates[len(e.UnverifiedCertificates)-1]
	if IsA[x509.UnknownAuthorityError](e.Err) && last.Issuer.String() != last.Subject.String() {
		why = "certificate signed by unknown authority"
		known = []string{fmt.Sprintf("%q is not trusted here, and the broker did not send its certificate", last.Issuer)}
		if strings.Contains(e.Err.Error(), "candidate authority") {
			known = []string{"not by the trusted one, but by another of that name"}
		}
	}
	return fmt.Sprintf("certificate of %q, issued by %q: %s", c.Subject, c.Issuer, why), known
}

// NamesAddressAsDNS reports whether the certificate lists the IP address as a DNS name. Clients look for an
// address only among a certificate's IP addresses.
func NamesAddressAsDNS(e x509.HostnameError) bool {
	return net.ParseIP(e.Host) != nil && e.Certificate != nil && slices.Contains(e.Certificate.DNSNames, e.Host)
}

// timeWords says when a certificate expired or becomes valid.
func timeWords(c *x509.Certificate, now time.Time) string {
	if now.Before(c.NotBefore) {
		return "not valid before " + c.NotBefore.UTC().Format(time.RFC3339)
	}
	return "expired at " + c.NotAfter.UTC().Format(time.RFC3339)
}

func nameWords(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	const most = 8
	switch {
	case len(names) == 0:
		return "no host (it has no subject alternative name)"
	case len(names) > most:
		names = append(names[:most], "…")
	}
	return strings.Join(names, ", ")
}

// Describe adds a request's verb and key to its error. err must not be nil.
func Describe(c client.Command, err error) error {
	return &requestError{verb: c.Verb(), key: c.Key(), token: c.Fence(), err: err}
}

// DescribeScan is like [Describe], for a scan, but returns nil and an [OutputError] unchanged. If
// the broker has no SCAN, the result wraps a [NoScanError]. If the store refuses the pattern, the
// result has a hint about the syntax of patterns.
func DescribeScan(c client.Command, err error) error {
	if err == nil || IsA[*OutputError](err) {
		return err
	}
	if IsStoreError(wire.ErrorUnknownCommand)(err) {
		err = &NoScanError{Err: err}
	}
	if IsStoreError(wire.ErrorSyntax)(err) {
		err = &NextError{Err: err, Hint: suggest.Try("close every [ with ]; write ** only as a whole part between slashes, as in a/**/b; [[] matches a bracket, [*] a star")}
	}
	return Describe(c, err)
}

// About adds to an error the lock or the key that the error is about. The name fills the places Name and
// Key of the hint, but the message does not change.
func About(key string, err error) error { return &keyError{"", key, err} }

// AboutReading is like [About], for a lock or a key that was only read.
func AboutReading(key string, err error) error { return &keyError{wire.VerbGet, key, err} }

// A keyError is an error about a key.
type keyError struct {
	verb string // of [AboutReading]
	key  string
	err  error
}

func (e *keyError) Error() string { return Message(e.err) }

func (e *keyError) Unwrap() error { return e.err }

// A requestError is the error of a request to the store.
type requestError struct {
	verb  string
	key   string // empty = the verb has no key
	token string // the fencing token; empty = none
	err   error
}

func (e *requestError) Error() string { return e.what() + ": " + Message(e.err) }

// what names the request.
func (e *requestError) what() string {
	if e.key == "" {
		return format.Verb(e.verb)
	}
	return format.Verb(e.verb) + " " + format.Brief(e.key)
}

func (e *requestError) Unwrap() error { return e.err }

// Request returns the verb and the key of the request that failed. Both are empty if the error is not about
// a request for a key. If it is about holding a lock, which takes several requests, only the verb is empty.
func Request(err error) (verb, key string) {
	if e, ok := errors.AsType[*requestError](err); ok {
		return e.verb, e.key
	}
	if e, ok := errors.AsType[*keyError](err); ok {
		return e.verb, e.key
	}
	if e, ok := errors.AsType[*client.WatchError](err); ok {
		return wire.VerbKeyNotify, e.Key
	}
	return "", ""
}

// Advice returns a hint if the store did not know the verb because the verb is not in upper case.
func (e *requestError) Advice() (suggest.Hint, bool) {
	upper := strings.ToUpper(e.verb)
	again := "the store knows verbs in upper case: `sscli call WORDS... KEY …`"
	switch {
	case e.key == "":
		again = "the store knows verbs in upper case: `sscli call WORDS...`"
	case upper == wire.VerbGet || upper == wire.VerbDel:
		again = "the store knows verbs in upper case: `sscli call WORDS... KEY`"
	}
	return suggest.Try(again).Fill(suggest.Words, upper), upper != e.verb && IsStoreError(wire.ErrorUnknownCommand)(e.err)
}
