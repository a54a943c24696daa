package certs

import (
	"crypto/tls"

	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/pemfile"
)

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
func ServerTLS(pair tls.Certificate, clientCA string, warn func(message, hint string)) (*tls.Config, error) {
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
