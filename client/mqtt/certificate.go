package mqtt

import (
	"crypto/tls"
	"errors"
	"net"
)

// A ClientCertificateError is a connection that the broker ended after it had asked
// for a client certificate. Without one, Given is false, any end before CONNACK
// counts: with TLS 1.3 a broker refuses only after the handshake, and its alert may
// be lost in the reset that follows. With one, only an alert does.
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

// certificateRequest is what became of the broker's wish for a certificate.
type certificateRequest struct {
	asked, given bool
}

// observe returns the configuration of a connection whose certificate requests are
// noted.
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

// explain says of the end of a connection what it has to do with certificates.
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
