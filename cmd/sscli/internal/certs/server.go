package certs

import "crypto/tls"

// ServerTLS returns the configuration of a server that shows a certificate. If clientCA,
// the PEM file of an authority, is not empty, clients must have a certificate of that
// authority. The error is about that file.
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
