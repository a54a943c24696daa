package certs

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
)

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
