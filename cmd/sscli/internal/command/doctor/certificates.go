package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/certs"
	"github.com/sscli/sscli/format"
)

// certificates adds the broker's certificates to a check: names, issuers and dates. It warns if a
// certificate of the broker or of the user expires soon. With --tls-insecure, it warns instead if
// verification would refuse the broker.
func (c *checkup) certificates(check *format.Check, now time.Time) {
	state := c.recorder.tls
	leaf := state.PeerCertificates[0]
	check.Message = fmt.Sprintf("%s, %s", tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite))
	check.Facts = chain(state.PeerCertificates)
	if c.o.TLS.InsecureSkipVerify {
		// state.ServerName is empty if the host is an address.
		options := x509.VerifyOptions{Roots: c.o.TLS.RootCAs, DNSName: c.o.TLS.ServerName, Intermediates: x509.NewCertPool()}
		for _, cert := range state.PeerCertificates[1:] {
			options.Intermediates.AddCert(cert)
		}
		if _, err := leaf.Verify(options); err != nil {
			check.Status, check.Message = format.Warn, check.Message+"; without --tls-insecure it would be refused: "+err.Error()
		}
		return
	}
	const soon = 14 * 24 * time.Hour
	first := certs.FirstToExpire(*state, c.o.TLS.Certificates)
	if left := first.NotAfter.Sub(now); left < soon {
		check.Status = format.Warn
		check.Hint = "renew the certificate before then"
		check.Message += fmt.Sprintf("; the certificate of %q expires in %s", first.Subject, left.Round(time.Minute))
	}
}

// chain returns facts about a chain of certificates, which begins with the broker's own.
func chain(certificates []*x509.Certificate) (facts []format.Fact) {
	for i, cert := range certificates {
		name := "certificate"
		if i > 0 {
			name = "signed by"
		}
		value := fmt.Sprintf("%s, %s to %s", cert.Subject, cert.NotBefore.UTC().Format(time.DateOnly), cert.NotAfter.UTC().Format(time.DateOnly))
		hosts := slices.Clone(cert.DNSNames)
		for _, ip := range cert.IPAddresses {
			hosts = append(hosts, ip.String())
		}
		if i == 0 && len(hosts) > 0 {
			value += ", for " + strings.Join(hosts, ", ")
		}
		facts = append(facts, format.Fact{Name: name, Value: value})
		if i == len(certificates)-1 && cert.Issuer.String() != cert.Subject.String() {
			facts = append(facts, format.Fact{Name: "signed by", Value: cert.Issuer.String()})
		}
	}
	return facts
}
