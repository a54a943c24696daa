package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/atomicfile"
)

// A selfSigned is a directory with the certificates of --self-signed: a CA, and a
// server and a client of it.
type selfSigned struct {
	dir   string
	names []string // that the server's certificate must have
	now   time.Time
}

// The lives of the certificates. Some clients refuse those of servers that last
// longer than two years or so.
const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
)

func (s selfSigned) path(name string) string { return filepath.Join(s.dir, name) }

// serverNames are the names by which clients may reach a server that listens there.
func serverNames(listen string) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && host != "" && (ip == nil || !ip.IsUnspecified()) {
		names = append(names, host)
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		names = append(names, host)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// prepare makes what is missing, has run out or does not name the server, and
// returns the server's certificate. What is not of its making it leaves alone.
func (s selfSigned) prepare() (tls.Certificate, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return tls.Certificate{}, err
	}
	ca, err := s.readAuthority()
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := s.certificate("client", ca, []string{"client"}, x509.ExtKeyUsageClientAuth); err != nil {
		return tls.Certificate{}, err
	}
	if err := s.certificate("server", ca, s.names, x509.ExtKeyUsageServerAuth); err != nil {
		return tls.Certificate{}, err
	}
	return tls.LoadX509KeyPair(s.path("server.crt"), s.path("server.key"))
}

// signingCA is a CA that may have a key.
type signingCA struct {
	cert *x509.Certificate
	key  crypto.Signer // nil: it can only be verified with
}

// readAuthority reads the CA, or makes one where there is none.
func (s selfSigned) readAuthority() (signingCA, error) {
	crt, key := s.path("ca.crt"), s.path("ca.key")
	text, err := os.ReadFile(crt)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(key); err == nil {
			return signingCA{}, fmt.Errorf("%s is there without ca.crt: remove it, or name another directory", key)
		}
		return s.newAuthority()
	}
	if err != nil {
		return signingCA{}, err
	}
	chain, err := readCertificates(text)
	if err != nil {
		return signingCA{}, fmt.Errorf("%s: %w", crt, err)
	}
	ca := signingCA{cert: chain.Leaf}
	if !s.now.Before(ca.cert.NotAfter) {
		return ca, fmt.Errorf("%s ran out at %s: remove the directory for a new one", crt, ca.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	if text, err = os.ReadFile(key); errors.Is(err, fs.ErrNotExist) {
		return ca, nil
	}
	if err != nil {
		return ca, err
	}
	if ca.key, err = readKey(text, nil); err != nil {
		return ca, fmt.Errorf("%s: %w", key, err)
	}
	if !fits(ca.key, ca.cert) {
		return ca, fmt.Errorf("%s does not fit ca.crt: name another directory", key)
	}
	return ca, nil
}

func (s selfSigned) newAuthority() (signingCA, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "sscli serve"}, NotAfter: s.now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return s.issue("ca", template, signingCA{})
}

// certificate sees that NAME.crt and NAME.key are there and good.
func (s selfSigned) certificate(name string, ca signingCA, names []string, use x509.ExtKeyUsage) error {
	crt := s.path(name + ".crt")
	text, err := os.ReadFile(crt)
	why := "is missing"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(s.path(name + ".key")); err == nil && ca.key == nil {
			return fmt.Errorf("%s is missing, and without ca.key it cannot be made: name another directory", crt)
		}
	case err != nil:
		return err
	default:
		chain, err := readCertificates(text)
		if err != nil {
			return fmt.Errorf("%s: %w", crt, err)
		}
		if chain.Leaf.CheckSignatureFrom(ca.cert) != nil {
			return fmt.Errorf("%s is not of the CA in ca.crt: name another directory", crt)
		}
		if why = s.flaw(name, chain.Leaf, names); why == "" {
			return nil
		}
	}
	if ca.key == nil {
		return fmt.Errorf("%s %s, and without ca.key it cannot be made: name another directory", crt, why)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotAfter: earlier(s.now.Add(certificateLife), ca.cert.NotAfter),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	_, err = s.issue(name, template, ca)
	return err
}

// flaw tells why a certificate has to be made again.
func (s selfSigned) flaw(name string, cert *x509.Certificate, names []string) string {
	if s.now.Before(cert.NotBefore) || !s.now.Before(cert.NotAfter) {
		return "has run out"
	}
	for _, n := range names {
		if cert.VerifyHostname(n) != nil {
			return "does not name " + n
		}
	}
	text, err := os.ReadFile(s.path(name + ".key"))
	if err != nil {
		return "has no key"
	}
	if key, err := readKey(text, nil); err != nil || !fits(key, cert) {
		return "does not fit its key"
	}
	return ""
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// issue writes NAME.key and NAME.crt, signed by ca or, without one, by itself.
func (s selfSigned) issue(name string, template *x509.Certificate, ca signingCA) (signingCA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return signingCA{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return signingCA{}, err
	}
	template.SerialNumber = serial
	template.NotBefore = s.now.Add(-time.Hour) // for clocks that are behind
	if ca.cert == nil {
		ca = signingCA{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return signingCA{}, err
	}
	private, err := keyPEM(key)
	if err != nil {
		return signingCA{}, err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := atomicfile.Write(s.path(name+".key"), private, 0o600); err != nil {
		return signingCA{}, err
	}
	if err := atomicfile.Write(s.path(name+".crt"), public, 0o644); err != nil {
		return signingCA{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return signingCA{cert, key}, err
}

func keyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}
