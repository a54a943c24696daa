package mqtt

import (
	"crypto/tls"
	"errors"
	"net"
)

// A ClientCertificateError means that the broker asked for a client certificate and then
// ended the connection. Given says whether the client had sent one. If not, any end before
// CONNACK counts: with TLS 1.3 a broker refuses only after the handshake, and its alert may
// be lost in the reset that follows. If so, only an alert counts.
type ClientCertificateError struct {
	Given bool
	Err   error // a *net.OpError, often of Op "remote error", or a *LostError
}

func (e *ClientCertificateError) Error() string {
	if e.Given {
		return "the broker refused the client certificate: " + e.Err.Error()
	}
	return "the broker asked for a client certificate and got none: " + e.Err.Error()
}

func (e *ClientCertificateError) Unwrap() error { return e.Err }

// certificateRequest says whether the broker asked for a certificate and got one.
type certificateRequest struct {
	asked, given bool
}

// observe returns a TLS configuration that records requests for a certificate.
func (r *certificateRequest) observe(config *tls.Config) *tls.Config {
	config = config.Clone()
	choose, certificates := config.GetClientCertificate, config.Certificates
	config.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		r.asked = true
		if choose != nil {
			cert, err := choose(info)
			r.given = cert != nil && len(cert.Certificate) > 0
			return cert, err
		}
		for i := range certificates {
			if info.SupportsCertificate(&certificates[i]) == nil {
				r.given = true
				return &certificates[i], nil
			}
		}
		return &tls.Certificate{}, nil
	}
	return config
}

// explain turns err into a ClientCertificateError if a certificate is the cause.
func (r *certificateRequest) explain(err error) error {
	if !r.asked {
		return err
	}
	if _, refused := errors.AsType[*ReasonError](err); refused {
		return err
	}
	op, network := errors.AsType[*net.OpError](err)
	alert := network && op.Op == "remote error"
	if alert || !r.given && (network || errors.Is(err, ErrBrokerClosed)) {
		return &ClientCertificateError{r.given, err}
	}
	return err
}
