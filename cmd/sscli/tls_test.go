package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/youmark/pkcs8"
)

// An authority issues certificates.
type authority struct {
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	usage []x509.ExtKeyUsage // extended key usage of its certificates
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert, key, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, err
}

// issue issues a certificate for a server or client with these names, valid from an hour ago to an hour from now.
func (a *authority) issue(names ...string) (tls.Certificate, error) {
	return a.issueFor(-time.Hour, time.Hour, names...)
}

// issueFor issues a certificate that is valid between these times, relative to now.
func (a *authority) issueFor(from, to time.Duration, names ...string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]},
		NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(to),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: a.usage,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func (a *authority) pem() []byte { return certificatePEM(a.cert.Raw) }

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// keyPassword is the password of the encrypted keys.
const keyPassword = "open sesame"

// writeCertificate writes the certificate NAME.pem, its key NAME-key.pem, and the same key encrypted as
// NAME-key-encrypted.pem (PKCS #8) and NAME-key-legacy.pem.
func writeCertificate(dir, name string, cert tls.Certificate) error {
	plain, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return err
	}
	encrypted, err := pkcs8.MarshalPrivateKey(cert.PrivateKey, []byte(keyPassword), nil)
	if err != nil {
		return err
	}
	ec, err := x509.MarshalECPrivateKey(cert.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		return err
	}
	//lint:ignore SA1019 what is read must be written first
	legacy, err := x509.EncryptPEMBlock(rand.Reader, "EC PRIVATE KEY", ec, []byte(keyPassword), x509.PEMCipherAES256)
	if err != nil {
		return err
	}
	write := func(suffix string, text []byte) error {
		return os.WriteFile(filepath.Join(dir, name+suffix), text, 0o600)
	}
	return errors.Join(
		write(".pem", certificatePEM(cert.Certificate[0])),
		write("-key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: plain})),
		write("-key-encrypted.pem", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: encrypted})),
		write("-key-legacy.pem", pem.EncodeToMemory(legacy)),
	)
}
