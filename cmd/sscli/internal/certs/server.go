package certs

import "crypto/tls"

// ServerTLS returns the TLS configuration for a server with this certificate. clientCA names a PEM file
// with CA certificates. If clientCA is not empty, clients must have a certificate from one of these
// CAs. The error is about clientCA.
func ServerTLS(pair tls.Certificate, clientCA string) (*tls.Config, error) {
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if clientCA == "" {
		return c, nil
	}
	pool, err := ReadPool(clientCA)
	if err != nil {
		return nil, err
	}
	c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
	return c, nil
}
