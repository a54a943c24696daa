package certs

import "crypto/tls"

// ServerTLS returns the configuration of a server with a certificate. If clientCA, a PEM file
// with the certificate of a CA, is not empty, clients must have a certificate of that CA. The
// error is about that file.
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
