package certs

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/pemfile"
)

// TLSConfig returns the TLS configuration for the broker that the settings name; nil without TLS.
// It reads the files that the settings name, and the client certificate again for each connection. The
// error is a *config.Error. warn is called for damaged certificates that are skipped.
func TLSConfig(s config.Settings, warn func(string)) (c *tls.Config, err error) {
	if !s.TLS {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.WithZone("").String() // the zone is a name of this machine: no certificate contains it
	}
	c = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cmp.Or(s.ServerName, host), InsecureSkipVerify: s.Insecure}
	if s.CAFile != "" {
		if c.RootCAs, err = pemfile.ReadPool(s.CAFile, warn); err != nil {
			return nil, &config.Error{Source: s.Sources["ca-file"], Why: err.Error()}
		}
	}
	if s.CertFile == "" {
		return c, nil
	}
	read := func() (tls.Certificate, error) { return clientCertificate(s) }
	return c, pemfile.UseRotating(c, files.Again(read, s.CertFile, s.KeyFile, s.KeyPasswordFile))
}

// clientCertificate reads the client certificate that the settings name, and its key. The error is a
// *config.Error.
func clientCertificate(s config.Settings) (tls.Certificate, error) {
	bad := func(flag string, err error) (tls.Certificate, error) {
		return tls.Certificate{}, &config.Error{Source: s.Sources[flag], Why: err.Error()}
	}
	text, err := files.ReadText(s.CertFile)
	if err != nil {
		return bad("cert-file", err)
	}
	cert, err := pemfile.ReadCertificates(text)
	if err != nil {
		return bad("cert-file", fmt.Errorf("%s: %w", s.CertFile, err))
	}
	if text, err = files.ReadText(s.KeyFile); err != nil {
		return bad("key-file", err)
	}
	password, err := ReadSecret(s, "key-password-file", s.KeyPasswordFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := pemfile.ReadKey(text, password)
	switch {
	case errors.Is(err, pemfile.ErrPassword):
		return bad("key-password-file", fmt.Errorf("%s is not the password of %s", s.KeyPasswordFile, s.KeyFile))
	case errors.Is(err, pemfile.ErrEncrypted):
		return bad("key-file", fmt.Errorf("%s: %w: add --key-password-file", s.KeyFile, err))
	case err != nil:
		return bad("key-file", fmt.Errorf("%s: %w", s.KeyFile, err))
	case !pemfile.Fits(key, cert.Leaf):
		return bad("key-file", fmt.Errorf("%s is not the key of the first certificate in %s, which is for %q", s.KeyFile, s.CertFile, cert.Leaf.Subject))
	}
	cert.PrivateKey = key
	return cert, nil
}

// ReadSecret is [files.ReadSecret]. flag is the setting that names the file. The error is a *config.Error.
func ReadSecret(s config.Settings, flag, file string) ([]byte, error) {
	secret, err := files.ReadSecret(file)
	if err != nil {
		return nil, &config.Error{Source: s.Sources[flag], Why: err.Error()}
	}
	return secret, nil
}

// SecretReader returns a function that is like ReadSecret, and may be called for each connection: see [files.Again].
func SecretReader(s config.Settings, flag, file string) func() ([]byte, error) {
	return files.Again(func() ([]byte, error) { return ReadSecret(s, flag, file) }, file)
}

// Certificate returns the first certificate in a PEM file.
func Certificate(file string) (*x509.Certificate, error) {
	text, err := files.ReadText(file)
	if err != nil {
		return nil, err
	}
	cert, err := pemfile.ReadCertificates(text)
	return cert.Leaf, err
}

// ReadPair returns the certificate and the key of a server in two PEM files.
func ReadPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := files.ReadFile(certFile, files.MaxText)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := files.ReadFile(keyFile, files.MaxText)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// ServerTLS returns the TLS configuration for a server with this certificate. clientCA names a PEM file
// with CA certificates. If clientCA is not empty, clients must have a certificate from one of these
// CAs. The error is about clientCA. warn is called for its damaged certificates, which are skipped.
func ServerTLS(pair tls.Certificate, clientCA string, warn func(string)) (*tls.Config, error) {
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if clientCA == "" {
		return c, nil
	}
	pool, err := pemfile.ReadPool(clientCA, warn)
	if err != nil {
		return nil, err
	}
	c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
	return c, nil
}

// FirstToExpire returns the certificate that expires first: of the chains by which the peer was verified, which end
// with a CA that the peer need not have sent, and of own, the client's certificates with their intermediates. Without
// a verified chain, the certificates that the peer sent stand for one. It returns nil if there is no certificate.
func FirstToExpire(state tls.ConnectionState, own []tls.Certificate) (first *x509.Certificate) {
	all := slices.Concat(state.VerifiedChains...)
	if len(all) == 0 {
		all = slices.Clone(state.PeerCertificates)
	}
	for _, cert := range own {
		if cert.Leaf != nil {
			all = append(all, cert.Leaf)
		}
		for _, der := range cert.Certificate[min(1, len(cert.Certificate)):] {
			if above, err := x509.ParseCertificate(der); err == nil {
				all = append(all, above)
			}
		}
	}
	for _, cert := range all {
		if first == nil || cert.NotAfter.Before(first.NotAfter) {
			first = cert
		}
	}
	return first
}
