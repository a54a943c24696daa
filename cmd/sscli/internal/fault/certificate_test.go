package fault

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"

	"github.com/sscli/sscli/internal/mqtt"
)

func TestCertificateWords(t *testing.T) {
	name := func(cn string) pkix.Name { return pkix.Name{CommonName: cn} }
	leaf := &x509.Certificate{Subject: name("broker"), Issuer: name("Intermediate"), DNSNames: []string{"broker", "10.0.0.7"}}
	root := &x509.Certificate{Subject: name("Root"), Issuer: name("Root")}
	for _, test := range []struct {
		err  error
		sent []*x509.Certificate
		want string
	}{
		{x509.HostnameError{Certificate: leaf, Host: "10.0.0.7"}, []*x509.Certificate{leaf}, "names 10.0.0.7 as a DNS name, and must name it as an IP address"},
		{x509.HostnameError{Certificate: leaf, Host: "10.0.0.8"}, []*x509.Certificate{leaf}, "issued for broker, 10.0.0.7, not for 10.0.0.8"},
		{x509.CertificateInvalidError{Cert: leaf, Reason: x509.IncompatibleUsage}, []*x509.Certificate{leaf}, "not for servers"},
		{x509.UnknownAuthorityError{Cert: leaf}, []*x509.Certificate{leaf}, `unknown authority; "CN=Intermediate" is not trusted here, and the broker did not send its certificate`},
		{x509.UnknownAuthorityError{Cert: leaf}, []*x509.Certificate{leaf, root}, "certificate signed by unknown authority"},
	} {
		got := Message(&mqtt.DialError{Err: &tls.CertificateVerificationError{UnverifiedCertificates: test.sent, Err: test.err}})
		if !strings.Contains(got, test.want) || len(test.sent) > 1 && strings.Contains(got, "did not send") {
			t.Errorf("%s\nwant %s", got, test.want)
		}
	}
}
