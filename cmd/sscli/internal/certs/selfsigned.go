package certs

import (
	"context"
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
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/pemfile"
)

// SelfSigned is a directory with the certificates of serve --self-signed: a CA (ca.crt, ca.key),
// and the certificates that the CA issued for a server and a client.
type SelfSigned struct {
	Dir   string    // created if it is missing
	Names []string  // host names and addresses that the server's certificate must have
	Now   time.Time // the current time, for the validity of certificates
}

// How long the certificates are valid, from the time when they are created. Some clients refuse a
// server certificate that is valid for more than about two years.
const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
)

func (s SelfSigned) path(name string) string { return filepath.Join(s.Dir, name) }

// ServerNames returns the names by which clients may reach a server that listens on an address.
func ServerNames(listen string) []string {
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

// Prepare creates each certificate that is missing, is not valid now, has no key, or lacks one of Names,
// and returns the server's certificate. It never replaces a key, and replaces a certificate only if a CA
// that Prepare created has issued it. Only one process prepares a directory at a time; others wait until
// ctx ends.
func (s SelfSigned) Prepare(ctx context.Context) (tls.Certificate, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return tls.Certificate{}, err
	}
	unlock, err := files.Lock(ctx, s.path(".lock"))
	switch {
	case err == nil:
		defer unlock()
	case !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS): // nobody can create files in a directory for reading only
		return tls.Certificate{}, err
	}
	for _, name := range []string{"ca", "client", "server"} {
		if err := s.checkKey(name); err != nil {
			return tls.Certificate{}, err
		}
	}
	ca, err := s.readAuthority()
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := s.certificate("client", ca, []string{"client"}, x509.ExtKeyUsageClientAuth); err != nil {
		return tls.Certificate{}, err
	}
	if err := s.certificate("server", ca, s.Names, x509.ExtKeyUsageServerAuth); err != nil {
		return tls.Certificate{}, err
	}
	return ReadPair(s.path("server.crt"), s.path("server.key"))
}

// A signingCA is a CA's certificate, with the private key if there is one.
type signingCA struct {
	cert *x509.Certificate
	key  crypto.Signer // nil = the CA cannot issue certificates
}

// readAuthority reads the CA, or creates one if there is none.
func (s SelfSigned) readAuthority() (signingCA, error) {
	crt, key := s.path("ca.crt"), s.path("ca.key")
	text, err := files.ReadFile(crt, files.MaxText)
	if errors.Is(err, fs.ErrNotExist) {
		return s.newAuthority()
	}
	if err != nil {
		return signingCA{}, err
	}
	chain, err := pemfile.ReadCertificates(text)
	if err != nil {
		return signingCA{}, fmt.Errorf("%s: %w", crt, err)
	}
	ca := signingCA{cert: chain.Leaf}
	if !s.Now.Before(ca.cert.NotAfter) {
		return ca, fmt.Errorf("%s expired at %s: remove the directory to make a new CA", crt, ca.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	if text, err = files.ReadFile(key, files.MaxText); errors.Is(err, fs.ErrNotExist) {
		return ca, nil
	}
	if err != nil {
		return ca, err
	}
	if ca.key, err = pemfile.ReadKey(text, nil); err != nil {
		return ca, fmt.Errorf("%s: %w", key, err)
	}
	if !pemfile.Fits(ca.key, ca.cert) {
		return ca, fmt.Errorf("%s is not the key of ca.crt: use another directory", key)
	}
	return ca, nil
}

// checkKey returns an error if NAME.key exists although NAME.crt is missing. The key may belong to a
// certificate elsewhere, so it must not be replaced.
func (s SelfSigned) checkKey(name string) error {
	key := s.path(name + ".key")
	if _, err := os.Lstat(key); err != nil {
		return nil
	}
	if _, err := os.Lstat(s.path(name + ".crt")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists without %s.crt: remove it, or use another directory", key, name)
	}
	return nil
}

// authorityName is the common name of each CA that Prepare creates.
const authorityName = "sscli serve"

func (s SelfSigned) newAuthority() (signingCA, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: authorityName}, NotAfter: s.Now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return s.issue("ca", template, signingCA{}, nil)
}

// certificate creates NAME.crt and NAME.key, unless both exist and are valid.
func (s SelfSigned) certificate(name string, ca signingCA, names []string, use x509.ExtKeyUsage) error {
	crt := s.path(name + ".crt")
	text, err := files.ReadFile(crt, files.MaxText)
	why := "is missing"
	var key crypto.Signer
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		chain, err := pemfile.ReadCertificates(text)
		if err != nil {
			return fmt.Errorf("%s: %w", crt, err)
		}
		if chain.Leaf.CheckSignatureFrom(ca.cert) != nil {
			return fmt.Errorf("%s was not issued by the CA in ca.crt: use another directory", crt)
		}
		if key, err = s.readKey(name, chain.Leaf); err != nil {
			return err
		}
		if why = s.flaw(key, chain.Leaf, names); why == "" {
			return nil
		}
		if ca.cert.Subject.CommonName != authorityName {
			return fmt.Errorf("%s %s: use another directory", crt, why)
		}
	}
	if ca.key == nil {
		return fmt.Errorf("%s %s, and cannot be made without ca.key: use another directory", crt, why)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotAfter: slices.MinFunc([]time.Time{s.Now.Add(certificateLife), ca.cert.NotAfter}, time.Time.Compare),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	_, err = s.issue(name, template, ca, key)
	return err
}

// readKey reads the key of a certificate, or returns nil if there is none.
func (s SelfSigned) readKey(name string, cert *x509.Certificate) (crypto.Signer, error) {
	file := s.path(name + ".key")
	text, err := files.ReadFile(file, files.MaxText)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key, err := pemfile.ReadKey(text, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !pemfile.Fits(key, cert) {
		return nil, fmt.Errorf("%s is not the key of %s.crt: remove both, or use another directory", file, name)
	}
	return key, nil
}

// flaw returns why a certificate must be replaced, or "". key is nil if the certificate has none.
func (s SelfSigned) flaw(key crypto.Signer, cert *x509.Certificate, names []string) string {
	switch {
	case s.Now.Before(cert.NotBefore):
		return "is not valid yet"
	case !s.Now.Before(cert.NotAfter):
		return "has expired"
	}
	for _, n := range names {
		if cert.VerifyHostname(n) != nil {
			return "is not for " + n
		}
	}
	if key == nil {
		return "has no key"
	}
	return ""
}

// issue writes NAME.crt and, unless the certificate keeps its key, NAME.key with a new one. The
// certificate is signed by ca, or by its own key if ca has no certificate. NAME.key is written last, so
// that a crash leaves no key without a certificate.
func (s SelfSigned) issue(name string, template *x509.Certificate, ca signingCA, key crypto.Signer) (signingCA, error) {
	var private []byte
	if key == nil {
		created, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return signingCA{}, err
		}
		if private, err = pemfile.KeyPEM(created); err != nil {
			return signingCA{}, err
		}
		key = created
	}
	template.NotBefore = s.Now.Add(-time.Hour) // the clocks of clients may be slow
	if ca.cert == nil {
		ca = signingCA{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return signingCA{}, err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := files.Write(s.path(name+".crt"), public, 0o644); err != nil {
		return signingCA{}, err
	}
	if private != nil {
		if err := files.Write(s.path(name+".key"), private, 0o600); err != nil {
			return signingCA{}, err
		}
	}
	cert, err := x509.ParseCertificate(der)
	return signingCA{cert, key}, err
}
