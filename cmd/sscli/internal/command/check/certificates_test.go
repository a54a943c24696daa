package check_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/pemfile"
)

// An issuer is a certificate with its key.
type issuer struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// issue returns a certificate for localhost that expires after left; ca is set if it may issue others. A nil issuer
// issues one that is signed by itself.
func (i *issuer) issue(t *testing.T, name string, left time.Duration, ca bool) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(left),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: ca, BasicConstraintsValid: true,
	}
	by := i
	if i == nil {
		by = &issuer{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{cert, key}
}

// chain returns the certificate for TLS, which sends it and the others.
func (i *issuer) chain(others ...*issuer) tls.Certificate {
	c := tls.Certificate{Certificate: [][]byte{i.cert.Raw}, PrivateKey: i.key, Leaf: i.cert}
	for _, other := range others {
		c.Certificate = append(c.Certificate, other.cert.Raw)
	}
	return c
}

// file writes the certificates, and the key if it is wanted, to a file in PEM.
func (i *issuer) file(t *testing.T, withKey bool, others ...*issuer) string {
	t.Helper()
	var text []byte
	for _, one := range append([]*issuer{i}, others...) {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.cert.Raw})...)
	}
	if withKey {
		key, err := pemfile.KeyPEM(i.key)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, key...)
	}
	name := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestCertExpires: what counts is the chain by which the broker was verified, whether or not the broker sends it, and
// the client's own with its intermediates. The certificate is named. Without a verification, the answer is unknown.
func TestCertExpires(t *testing.T) {
	t.Parallel()
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	goodRoot, oldRoot := (*issuer)(nil).issue(t, "good root", year, true), (*issuer)(nil).issue(t, "old root", 3*day, true)
	oldMiddle, goodMiddle := goodRoot.issue(t, "old middle", 3*day, true), goodRoot.issue(t, "good middle", year, true)
	good, client := goodRoot.issue(t, "good", year, false), goodRoot.issue(t, "client", year, false)
	for name, tt := range map[string]struct {
		broker tls.Certificate
		ca     *issuer
		own    string // the file of the client's certificate; "" = none
		args   string
		code   int
		want   string
	}{
		"all valid":                {broker: good.chain(), ca: goodRoot, code: 0, want: `the certificate of "CN=[a-z ]+" expires in 8\d{3}h`},
		"a leaf":                   {broker: goodRoot.issue(t, "old leaf", 3*day, false).chain(), ca: goodRoot, code: 2, want: `"CN=old leaf" expires in (72h0m|71h59m)`},
		"a leaf, warning":          {broker: goodRoot.issue(t, "old leaf", 20*day, false).chain(), ca: goodRoot, args: "--cert-expires 30d,14d", code: 1, want: `"CN=old leaf" expires in`},
		"a CA that is not sent":    {broker: oldRoot.issue(t, "leaf", year, false).chain(), ca: oldRoot, code: 2, want: `"CN=old root" expires in`},
		"a CA that is sent":        {broker: oldRoot.issue(t, "leaf", year, false).chain(oldRoot), ca: oldRoot, code: 2, want: `"CN=old root" expires in`},
		"an intermediate":          {broker: oldMiddle.issue(t, "leaf", year, false).chain(oldMiddle), ca: goodRoot, code: 2, want: `"CN=old middle" expires in`},
		"an anchor in the middle":  {broker: oldMiddle.issue(t, "leaf", year, false).chain(), ca: oldMiddle, code: 2, want: `"CN=old middle" expires in`},
		"a certificate not in use": {broker: goodMiddle.issue(t, "leaf", year, false).chain(goodMiddle, oldMiddle), ca: goodRoot, code: 0, want: `expires in 8`},
		"the client's":             {broker: good.chain(), ca: goodRoot, own: goodRoot.issue(t, "old client", 3*day, false).file(t, true), code: 2, want: `"CN=old client" expires in`},
		"the client's issuer":      {broker: good.chain(), ca: goodRoot, own: oldMiddle.issue(t, "client", year, false).file(t, true, oldMiddle), code: 2, want: `"CN=old middle" expires in`},
		"not verified":             {broker: good.chain(), ca: goodRoot, own: client.file(t, true), args: "--cert-expires 14d --tls-insecure", code: 3, want: `not verified`},
		"not verified, and a leaf": {broker: goodRoot.issue(t, "old leaf", 3*day, false).chain(), ca: goodRoot, args: "--cert-expires 14d --tls-insecure", code: 2, want: `"CN=old leaf" expires in`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := x509.NewCertPool()
			pool.AddCert(goodRoot.cert)
			store := emulator.Start(t, emulator.Options{TLS: &tls.Config{Certificates: []tls.Certificate{tt.broker}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool}})
			args := append(strings.Fields(tt.args), "--ca-file", tt.ca.file(t, false))
			if tt.args == "" {
				args = append(args, "--cert-expires", "14d")
			}
			if tt.own != "" {
				args = append(args, "--cert-file", tt.own, "--key-file", tt.own)
			}
			code, stdout, stderr := run(t, store.URL(), append(args, "-o", "nagios")...)
			if code != tt.code || !regexp.MustCompile(tt.want).MatchString(stdout) {
				t.Errorf("%d, %q, %q, want %d, %s", code, stdout, stderr, tt.code, tt.want)
			}
			_, stdout, _ = run(t, store.URL(), append(args, "-o", "prometheus")...)
			if known := !strings.HasPrefix(name, "not verified"); strings.Contains(stdout, "\nsscli_certificate_expiry_timestamp_seconds{") != known {
				t.Errorf("an expiry, known or not: %s", stdout)
			}
		})
	}
}
