package main

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/youmark/pkcs8"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// clientCertificate reads the certificate that the client shows, if it has one.
func clientCertificate(s config.Settings) ([]tls.Certificate, error) {
	if s.CertFile == "" {
		return nil, nil
	}
	bad := func(flag string, err error) error {
		return &config.Error{Source: s.Sources[flag], Why: err.Error()}
	}
	text, err := os.ReadFile(s.CertFile)
	if err != nil {
		return nil, bad("cert-file", err)
	}
	cert, err := readCertificates(text)
	if err != nil {
		return nil, bad("cert-file", fmt.Errorf("%s: %w", s.CertFile, err))
	}
	if text, err = os.ReadFile(s.KeyFile); err != nil {
		return nil, bad("key-file", err)
	}
	password, err := readSecret(s, "key-password-file", s.KeyPasswordFile)
	if err != nil {
		return nil, err
	}
	key, err := readKey(text, password)
	switch {
	case errors.Is(err, errKeyPassword):
		return nil, bad("key-password-file", fmt.Errorf("%s is not the password of %s", s.KeyPasswordFile, s.KeyFile))
	case err != nil:
		return nil, bad("key-file", fmt.Errorf("%s: %w", s.KeyFile, err))
	case !fits(key, cert.Leaf):
		return nil, bad("key-file", fmt.Errorf("%s does not fit the first certificate in %s, that of %q", s.KeyFile, s.CertFile, cert.Leaf.Subject))
	}
	cert.PrivateKey = key
	return []tls.Certificate{cert}, nil
}

// readSecret reads a file without the newline that editors leave. A flag without a
// file is nil.
func readSecret(s config.Settings, flag, file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, &config.Error{Source: s.Sources[flag], Why: err.Error()}
	}
	data = bytes.TrimSuffix(data, []byte("\n"))
	return bytes.TrimSuffix(data, []byte("\r")), nil
}

// readCertificates reads a certificate and those up to its CA.
func readCertificates(text []byte) (tls.Certificate, error) {
	var cert tls.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return cert, fmt.Errorf("certificate %d: %w", len(cert.Certificate)+1, err)
		}
		if cert.Leaf == nil {
			cert.Leaf = c
		}
		cert.Certificate = append(cert.Certificate, block.Bytes)
	}
	if cert.Leaf == nil {
		return cert, errors.New("no certificate in PEM")
	}
	return cert, nil
}

// errKeyPassword is a key that the password does not open.
var errKeyPassword = errors.New("the password does not open the key")

// readKey reads the first key in PEM. password is nil if there is none.
func readKey(text, password []byte) (crypto.Signer, error) {
	block, rest := pem.Decode(text)
	for block != nil && !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, errors.New("no key in PEM")
	}
	//lint:ignore SA1019 the encryption is weak, but the keys are there and nothing else reads them
	legacy := x509.IsEncryptedPEMBlock(block)
	if (legacy || block.Type == "ENCRYPTED PRIVATE KEY") && password == nil {
		return nil, errors.New("the key is encrypted: want --key-password-file too")
	}
	der := block.Bytes
	if block.Type == "ENCRYPTED PRIVATE KEY" {
		if len(password) == 0 {
			return nil, errKeyPassword // pkcs8 would take the key for a plain one
		}
		key, _, err := pkcs8.ParsePrivateKey(der, password)
		if err != nil {
			return nil, keyError(err)
		}
		return signer(key)
	}
	if legacy {
		var err error
		//lint:ignore SA1019 as above
		if der, err = x509.DecryptPEMBlock(block, password); err != nil {
			return nil, keyError(err)
		}
	}
	key, err := parseKey(der)
	if err != nil && legacy {
		return nil, errKeyPassword // the padding of one wrong password in 256 looks right
	}
	if err != nil {
		return nil, err
	}
	return signer(key)
}

// keyError tells a wrong password from a key in a form that is not known.
func keyError(err error) error {
	// pkcs8 has no error value for it.
	if errors.Is(err, x509.IncorrectPasswordError) || strings.HasSuffix(err.Error(), "incorrect password") {
		return errKeyPassword
	}
	return err
}

func parseKey(der []byte) (any, error) {
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return key, nil
	}
	if rsa, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return rsa, nil
	}
	if ec, err := x509.ParseECPrivateKey(der); err == nil {
		return ec, nil
	}
	return nil, errors.New("the key is damaged, or in a form that is not known: want PKCS #8, PKCS #1 or SEC 1")
}

func signer(key any) (crypto.Signer, error) {
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot sign", key)
	}
	return s, nil
}

// fits tells whether the key is that of the certificate.
func fits(key crypto.Signer, cert *x509.Certificate) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(cert.PublicKey)
}

// tlsConfig is how to speak TLS with the broker that the settings name; nil without TLS. The
// error is a *config.Error.
func tlsConfig(s config.Settings) (c *tls.Config, err error) {
	if !s.TLS {
		return nil, nil
	}
	c = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.ServerName, InsecureSkipVerify: s.Insecure}
	if s.CAFile != "" {
		if c.RootCAs, err = readPool(s.CAFile); err != nil {
			return nil, &config.Error{Source: s.Sources["ca-file"], Why: err.Error()}
		}
	}
	if c.Certificates, err = clientCertificate(s); err != nil {
		return nil, err
	}
	if c.ServerName == "" {
		host, _, err := net.SplitHostPort(s.Address)
		if err != nil {
			return nil, err
		}
		c.ServerName = host
	}
	return c, nil
}

// readPool reads the certificates of authorities.
func readPool(name string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", name)
	}
	return pool, nil
}
