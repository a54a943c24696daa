package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/format"
)

// certificates adds the broker's certificates to a check: names, issuers and dates. It warns if a
// certificate of either side expires soon.
func (c *checkup) certificates(check *format.Check, now time.Time) {
	state := c.recorder.tls
	leaf := state.PeerCertificates[0]
	check.Message = fmt.Sprintf("%s, %s", tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite))
	check.Facts = chain(state.PeerCertificates)
	if c.o.TLS.InsecureSkipVerify {
		options := x509.VerifyOptions{Roots: c.o.TLS.RootCAs, DNSName: state.ServerName, Intermediates: x509.NewCertPool()}
		for _, cert := range state.PeerCertificates[1:] {
			options.Intermediates.AddCert(cert)
		}
		if _, err := leaf.Verify(options); err != nil {
			check.Status, check.Message = format.Warn, check.Message+"; without --tls-insecure it would be refused: "+err.Error()
		}
		return
	}
	const soon = 14 * 24 * time.Hour
	for _, cert := range append(slices.Clone(state.PeerCertificates), leaves(c.o.TLS.Certificates)...) {
		if left := cert.NotAfter.Sub(now); left < soon {
			check.Status = format.Warn
			check.Hint = "renew the certificate before then"
			check.Message += fmt.Sprintf("; the certificate of %q expires in %s", cert.Subject, left.Round(time.Minute))
			return
		}
	}
}

// leaves returns the first certificate of each chain.
func leaves(certificates []tls.Certificate) (found []*x509.Certificate) {
	for _, c := range certificates {
		found = append(found, c.Leaf)
	}
	return found
}

// chain describes a chain of certificates, the broker's first.
func chain(certificates []*x509.Certificate) (facts []format.Fact) {
	for i, cert := range certificates {
		name := "certificate"
		if i > 0 {
			name = "signed by"
		}
		value := fmt.Sprintf("%s, %s to %s", cert.Subject, cert.NotBefore.UTC().Format(time.DateOnly), cert.NotAfter.UTC().Format(time.DateOnly))
		if names := names(cert); i == 0 && len(names) > 0 {
			value += ", for " + strings.Join(names, ", ")
		}
		facts = append(facts, format.Fact{Name: name, Value: value})
		if i == len(certificates)-1 && cert.Issuer.String() != cert.Subject.String() {
			facts = append(facts, format.Fact{Name: "signed by", Value: cert.Issuer.String()})
		}
	}
	return facts
}

// names lists the hosts that a certificate is for.
func names(cert *x509.Certificate) []string {
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// unverified describes the broker's certificates if an error says that they do not verify.
func unverified(err error) []format.Fact {
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return chain(e.UnverifiedCertificates)
	}
	return nil
}
