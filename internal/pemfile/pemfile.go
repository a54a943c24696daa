// Package pemfile reads certificates and keys in PEM. Keys may be PKCS #8 (also encrypted), PKCS #1 or
// SEC 1. No error contains a key or a password.
package pemfile

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/youmark/pkcs8"

	"github.com/sscli/sscli/internal/files"
)

// ReadCertificates reads a chain: a certificate, followed by its intermediate certificates.
func ReadCertificates(text []byte) (tls.Certificate, error) {
	var cert tls.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateType {
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

// ReadPool reads the CA certificates in a PEM file. It skips those that are damaged, and calls warn once if there are any.
func ReadPool(name string, warn func(string)) (*x509.CertPool, error) {
	text, err := files.ReadText(name)
	if err != nil {
		return nil, err
	}
	pool, good := x509.NewCertPool(), 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateType {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			pool.AddCert(c)
			good++
		}
	}
	damaged := bytes.Count(text, []byte("-----BEGIN "+certificateType+"-----")) - good
	switch {
	case good == 0 && damaged == 0:
		return nil, fmt.Errorf("%s holds no certificate in PEM", name)
	case good == 0:
		return nil, fmt.Errorf("%s: all certificates (%d) are damaged", name, damaged)
	case damaged == 1:
		warn(name + ": 1 damaged certificate is skipped")
	case damaged > 1:
		warn(fmt.Sprintf("%s: %d damaged certificates are skipped", name, damaged))
	}
	return pool, nil
}

const certificateType = "CERTIFICATE" // of a block in PEM

// Errors of ReadKey.
var (
	ErrPassword  = errors.New("the password does not decrypt the key")
	ErrEncrypted = errors.New("the key is encrypted")
)

// ReadKey reads the first key in PEM text. If password is nil, an encrypted key is ErrEncrypted.
func ReadKey(text, password []byte) (crypto.Signer, error) {
	block, rest := pem.Decode(text)
	for block != nil && !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, errors.New("no key in PEM")
	}
	//lint:ignore SA1019 the encryption is weak, but such keys exist and nothing else reads them
	legacy := x509.IsEncryptedPEMBlock(block)
	if (legacy || block.Type == "ENCRYPTED PRIVATE KEY") && password == nil {
		return nil, ErrEncrypted
	}
	der := block.Bytes
	if block.Type == "ENCRYPTED PRIVATE KEY" {
		if len(password) == 0 {
			return nil, ErrPassword // pkcs8 would read the key as unencrypted
		}
		key, err := decrypt(der, password)
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
		return nil, ErrPassword // one in 256 wrong passwords passes DecryptPEMBlock's padding check
	}
	if err != nil {
		return nil, err
	}
	return signer(key)
}

// errDamaged means that a key cannot be parsed.
var errDamaged = errors.New("the key is damaged, or in an unknown form: expected PKCS #8, PKCS #1 or SEC 1")

func decrypt(der, password []byte) (key any, err error) {
	defer func() {
		if recover() != nil { // pkcs8 does not check the lengths of the key and of the initialization vector
			key, err = nil, errDamaged
		}
	}()
	key, _, err = pkcs8.ParsePrivateKey(der, password)
	return key, err
}

// keyError returns ErrPassword if err means a wrong password, and err otherwise.
func keyError(err error) error {
	// pkcs8 has no error value for a wrong password.
	if errors.Is(err, x509.IncorrectPasswordError) || strings.HasSuffix(err.Error(), "incorrect password") {
		return ErrPassword
	}
	return err
}

// parseKey parses an unencrypted key in DER: PKCS #8, PKCS #1 or SEC 1.
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
	return nil, errDamaged
}

func signer(key any) (crypto.Signer, error) {
	s, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot sign", key)
	}
	return s, nil
}

// UseRotating sets the client certificate of c to the one that read returns, with its key. Each TLS handshake
// calls read again, so that the next connection uses files that were replaced. If read then returns an error,
// for example because only one of two files has been replaced yet, the last certificate is used.
func UseRotating(c *tls.Config, read func() (tls.Certificate, error)) error {
	first, err := read()
	if err != nil {
		return err
	}
	var last atomic.Pointer[tls.Certificate]
	last.Store(&first)
	c.Certificates = []tls.Certificate{first}
	c.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if now, err := read(); err == nil {
			last.Store(&now)
		}
		cert := last.Load()
		if info.SupportsCertificate(cert) != nil {
			return new(tls.Certificate), nil // send none, as without GetClientCertificate
		}
		return cert, nil
	}
	return nil
}

// Fits reports whether the key belongs to the certificate.
func Fits(key crypto.Signer, cert *x509.Certificate) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(cert.PublicKey)
}

// KeyPEM encodes a key as PKCS #8 in PEM, unencrypted.
func KeyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}
