package main

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"

	"github.com/sscli/sscli/internal/testkit/testcert"
	"github.com/youmark/pkcs8"
)

// keyPassword is the password of the encrypted keys.
const keyPassword = "open sesame"

// writeCertificate writes the certificate NAME.pem, its key NAME-key.pem, and the same key encrypted as
// NAME-key-encrypted.pem (PKCS #8) and NAME-key-legacy.pem.
func writeCertificate(dir, name string, cert *testcert.Cert) error {
	plain, err := x509.MarshalPKCS8PrivateKey(cert.Key)
	if err != nil {
		return err
	}
	encrypted, err := pkcs8.MarshalPrivateKey(cert.Key, []byte(keyPassword), nil)
	if err != nil {
		return err
	}
	ec, err := x509.MarshalECPrivateKey(cert.Key.(*ecdsa.PrivateKey))
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
		write(".pem", cert.PEM()),
		write("-key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: plain})),
		write("-key-encrypted.pem", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: encrypted})),
		write("-key-legacy.pem", pem.EncodeToMemory(legacy)),
	)
}
