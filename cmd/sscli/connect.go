package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/config"
	"github.com/sscli/sscli/emulator"
)

// withSession connects, and closes what it opened when f has returned.
func (a *app) withSession(ctx context.Context, f func(s *client.Session, o client.Options) error) (err error) {
	o, undo, err := a.broker()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	s, hangUp, err := a.dial(limited, o)
	cancel()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hangUp()) }()
	return f(s, o)
}

// broker returns how to reach the configured broker, and what undoes it.
func (a *app) broker() (client.Options, func() error, error) {
	if a.held != nil {
		return a.held.broker(a)
	}
	s := a.settings
	if err := s.Broker(); err != nil {
		return client.Options{}, nil, err
	}
	o := client.Options{
		Address:       s.Address,
		Username:      s.Username,
		ClientID:      s.ClientID,
		ResponseTopic: s.ResponseTopic,
		HighPriority:  s.HighPriority,
		NoPipelining:  s.NoPipelining,
		Timeout:       s.Timeout,
	}
	if o.Timeout == 0 {
		o.Timeout = client.DefaultTimeout
	}
	if s.ClientIDPrefix != "" {
		o.ClientID = s.ClientIDPrefix + "-" + strings.ToLower(rand.Text()[:16])
	}
	var err error
	if o.Password, err = readSecret(s, "password-file", s.PasswordFile); err != nil {
		return o, nil, err
	}
	if s.AskPass {
		o.Password = a.password
	}
	if !s.Embedded {
		o.TokenFile, o.WebSocket, o.Proxy = s.SATFile, s.WebSocket, s.Proxy
	}
	if o.TLS, err = a.tlsConfig(); err != nil {
		return o, nil, err
	}
	closeTrace, err := a.trace(&o)
	if err != nil {
		return o, nil, err
	}
	if !s.Embedded {
		return o, closeTrace, nil
	}
	server, err := emulator.New(emulator.Options{})
	if err != nil {
		return o, nil, errors.Join(err, closeTrace())
	}
	o.Address = server.Addr().String()
	return o, func() error { return errors.Join(server.Close(), closeTrace()) }, nil
}

func (a *app) tlsConfig() (c *tls.Config, err error) {
	s := a.settings
	if !s.TLS {
		return nil, nil
	}
	c = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.ServerName, InsecureSkipVerify: s.Insecure}
	if s.Insecure {
		a.warn("the broker's certificate is not verified ("+s.Sources["tls-insecure"]+"): anybody can be the broker", "")
	}
	if s.CAFile != "" {
		if c.RootCAs, err = readPool(s.CAFile); err != nil {
			return nil, &config.Error{Source: s.Sources["ca-file"], Why: err.Error()}
		}
	}
	if c.Certificates, err = clientCertificate(s); err != nil {
		return nil, err
	}
	if c.ServerName == "" {
		host, _, err := net.SplitHostPort(s.Address)
		if err != nil {
			return nil, err
		}
		c.ServerName = host
	}
	return c, nil
}

// readPool reads the certificates of authorities.
func readPool(name string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", name)
	}
	return pool, nil
}
