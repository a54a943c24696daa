// Package certs reads certificates and keys, and creates the certificates for serve --self-signed.
//
// [TLSConfig] returns the TLS configuration for the configured broker; nil without TLS:
//
//	config, err := certs.TLSConfig(settings, app.Warn)
//
// A server reads its files with [ReadPair] and [ServerTLS], or lets [SelfSigned] create them:
//
//	s := certs.SelfSigned{Dir: "certs", Names: certs.ServerNames(":8883"), Now: time.Now()}
//	cert, err := s.Prepare(ctx)
//
// Keys may be PKCS #8 (also encrypted), PKCS #1 or SEC 1, in PEM. Errors of TLSConfig name
// the setting's source, the file and the reason. No error contains a key or a password.
package certs
