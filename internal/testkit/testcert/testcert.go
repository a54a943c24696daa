// Package testcert makes the certificates of tests.
package testcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/pemfile"
)

// A Cert is a certificate with its key.
type Cert struct {
	*x509.Certificate
	Key crypto.Signer
}

// CA is the template of an authority, which is valid for an hour longer than what it issues, so that the leaf always
// ends first.
func CA(name string) x509.Certificate {
	return x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(2 * time.Hour),
	}
}

// Leaf is the template of a certificate for a server or a client with these names, the first of which is the common
// name. Without any it is for 127.0.0.1.
func Leaf(names ...string) x509.Certificate {
	if len(names) == 0 {
		names = []string{"127.0.0.1"}
	}
	template := x509.Certificate{Subject: pkix.Name{CommonName: names[0]}, KeyUsage: x509.KeyUsageDigitalSignature}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return template
}

// Issue makes a certificate from a template, with a new key on P-256. A nil by stands for the certificate itself. The
// serial number, and the time for which it is valid, from an hour ago to an hour from now, are set unless the template
// has them.
func Issue(by *Cert, template x509.Certificate) (*Cert, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return Sign(by, key, template)
}

// Sign is like [Issue], for a key of the caller's.
func Sign(by *Cert, key crypto.Signer, template x509.Certificate) (*Cert, error) {
	if template.SerialNumber == nil {
		serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
		if err != nil {
			return nil, err
		}
		template.SerialNumber = serial
	}
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	if by == nil {
		by = &Cert{&template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, by.Certificate, key.Public(), by.Key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Cert{cert, key}, err
}

// New is [Issue] in a test.
func New(t testing.TB, by *Cert, template x509.Certificate) *Cert {
	t.Helper()
	c, err := Issue(by, template)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TLS returns the certificate for a TLS configuration, which sends the others after it.
func (c *Cert) TLS(others ...*Cert) tls.Certificate {
	chain := tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: c.Key, Leaf: c.Certificate}
	for _, other := range others {
		chain.Certificate = append(chain.Certificate, other.Raw)
	}
	return chain
}

// Server returns the configuration of a server with the certificate.
func (c *Cert) Server() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.TLS()}}
}

// Pool returns a pool with the certificate. That of a nil Cert is empty.
func (c *Cert) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	if c != nil {
		pool.AddCert(c.Certificate)
	}
	return pool
}

// Trust returns the configuration of a client that trusts only the certificate, or, if it is nil, none.
func (c *Cert) Trust() *tls.Config { return &tls.Config{RootCAs: c.Pool()} }

// PEM returns the certificate, and then the others, as PEM.
func (c *Cert) PEM(others ...*Cert) []byte {
	var text []byte
	for _, der := range c.TLS(others...).Certificate {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return text
}

// KeyPEM returns the key as PEM.
func (c *Cert) KeyPEM(t testing.TB) []byte {
	t.Helper()
	text, err := pemfile.KeyPEM(c.Key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
