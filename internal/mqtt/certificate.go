package mqtt

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// A ClientCertificateError means that the broker asked for a client certificate and then ended the
// connection before CONNACK. If the client sent a certificate, the error is reported only after a
// TLS alert. If it sent none, the error is reported even without an alert: with TLS 1.3, a broker
// refuses the client after the handshake, and the TCP reset that follows may discard the broker's
// alert.
type ClientCertificateError struct {
	Given bool // the client sent a certificate

	// Unfit says why the client did not send its certificate: the broker accepts only certificates
	// from other authorities or with other kinds of keys. Nil if the client has no certificate.
	Unfit error

	Err error // a *net.OpError (a TLS alert has Op "remote error"), ErrBrokerClosed or a *LostError
}

func (e *ClientCertificateError) Error() string {
	if e.Unfit != nil {
		return fmt.Sprintf("%s; %v", e.Brief(), e.Unfit)
	}
	return e.Brief()
}

// Brief returns the text of the error without Unfit.
func (e *ClientCertificateError) Brief() string {
	what := "the broker asked for a client certificate and got none"
	if e.Given {
		what = "the broker refused the client certificate"
	} else if e.Unfit != nil {
		what = "the client certificate was not sent"
	}
	return what + ": " + e.Err.Error()
}

func (e *ClientCertificateError) Unwrap() error { return e.Err }

// A certificateRequest records whether the broker asked for a certificate and whether the
// client sent one.
type certificateRequest struct {
	asked, given bool
	unfit        error // why none of the client's certificates was sent
}

// observe returns a copy of config that records the broker's request for a certificate in r.
func (r *certificateRequest) observe(config *tls.Config) *tls.Config {
	config = config.Clone()
	choose, certificates := config.GetClientCertificate, config.Certificates
	config.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		r.asked = true
		if choose != nil {
			cert, err := choose(info)
			if r.given = cert != nil && len(cert.Certificate) > 0; !r.given {
				for i := range certificates {
					r.unfit = unfit(info, &certificates[i], info.SupportsCertificate(&certificates[i]))
				}
			}
			return cert, err
		}
		for i := range certificates {
			err := info.SupportsCertificate(&certificates[i])
			if err == nil {
				r.given, r.unfit = true, nil
				return &certificates[i], nil
			}
			r.unfit = unfit(info, &certificates[i], err)
		}
		return &tls.Certificate{}, nil
	}
	return config
}

// classify wraps err in a ClientCertificateError if a client certificate is probably the cause.
func (r *certificateRequest) classify(err error) error {
	if !r.asked {
		return err
	}
	if _, refused := errors.AsType[*ReasonError](err); refused {
		return err
	}
	op, network := errors.AsType[*net.OpError](err)
	alert := network && op.Op == "remote error"
	if alert || !r.given && (network || errors.Is(err, ErrBrokerClosed)) {
		return &ClientCertificateError{Given: r.given, Unfit: r.unfit, Err: err}
	}
	return err
}

// unfit returns why the broker does not accept a certificate. If the certificate's issuer is not
// among the authorities that the broker accepts, the error names up to four of those authorities.
// Otherwise unfit returns err.
func unfit(info *tls.CertificateRequestInfo, certificate *tls.Certificate, err error) error {
	leaf := certificate.Leaf
	if leaf == nil && len(certificate.Certificate) > 0 {
		leaf, _ = x509.ParseCertificate(certificate.Certificate[0])
	}
	var names []string
	for _, raw := range info.AcceptableCAs {
		var sequence pkix.RDNSequence
		if _, err := asn1.Unmarshal(raw, &sequence); err != nil {
			return err
		}
		names = append(names, fmt.Sprintf("%.128q", sequence.String()))
	}
	if leaf == nil || len(names) == 0 || slices.ContainsFunc(info.AcceptableCAs, func(raw []byte) bool { return bytes.Equal(raw, leaf.RawIssuer) }) {
		return err
	}
	const maxNames = 4
	if len(names) > maxNames {
		names = append(names[:maxNames], "…")
	}
	return fmt.Errorf("it is issued by %q, and the broker asked for one of %s", leaf.Issuer, strings.Join(names, ", "))
}
