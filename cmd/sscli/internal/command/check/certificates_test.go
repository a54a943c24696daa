package check_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/testcert"
)

// issue returns a certificate for this machine that expires after left; ca is set if it may issue others. A nil by
// stands for one that is signed by itself.
func issue(t *testing.T, by *testcert.Cert, name string, left time.Duration, ca bool) *testcert.Cert {
	t.Helper()
	template := testcert.CA(name)
	template.NotAfter, template.IsCA = time.Now().Add(left), ca
	if !ca {
		template.KeyUsage = x509.KeyUsageDigitalSignature
	}
	return testcert.New(t, by, template)
}

// own returns a file with a client's certificates and the key of the first.
func own(t *testing.T, cert *testcert.Cert, others ...*testcert.Cert) string {
	t.Helper()
	return pemFile(t, append(cert.PEM(others...), cert.KeyPEM(t)...))
}

// pemFile writes PEM to a file and returns its name.
func pemFile(t *testing.T, text []byte) string {
	t.Helper()
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
	goodRoot, oldRoot := issue(t, nil, "good root", year, true), issue(t, nil, "old root", 3*day, true)
	oldMiddle, goodMiddle := issue(t, goodRoot, "old middle", 3*day, true), issue(t, goodRoot, "good middle", year, true)
	good, client := issue(t, goodRoot, "good", year, false), issue(t, goodRoot, "client", year, false)
	for name, tt := range map[string]struct {
		broker tls.Certificate
		ca     *testcert.Cert
		own    string // the file of the client's certificate; "" = none
		args   string
		code   int
		want   string
	}{
		"all valid":                {broker: good.TLS(), ca: goodRoot, code: 0, want: `the certificate of "CN=[a-z ]+" expires in 8\d{3}h`},
		"a leaf":                   {broker: issue(t, goodRoot, "old leaf", 3*day, false).TLS(), ca: goodRoot, code: 2, want: `"CN=old leaf" expires in (72h0m|71h59m)`},
		"a leaf, warning":          {broker: issue(t, goodRoot, "old leaf", 20*day, false).TLS(), ca: goodRoot, args: "--cert-expires 30d,14d", code: 1, want: `"CN=old leaf" expires in`},
		"a CA that is not sent":    {broker: issue(t, oldRoot, "leaf", year, false).TLS(), ca: oldRoot, code: 2, want: `"CN=old root" expires in`},
		"a CA that is sent":        {broker: issue(t, oldRoot, "leaf", year, false).TLS(oldRoot), ca: oldRoot, code: 2, want: `"CN=old root" expires in`},
		"an intermediate":          {broker: issue(t, oldMiddle, "leaf", year, false).TLS(oldMiddle), ca: goodRoot, code: 2, want: `"CN=old middle" expires in`},
		"an anchor in the middle":  {broker: issue(t, oldMiddle, "leaf", year, false).TLS(), ca: oldMiddle, code: 2, want: `"CN=old middle" expires in`},
		"a certificate not in use": {broker: issue(t, goodMiddle, "leaf", year, false).TLS(goodMiddle, oldMiddle), ca: goodRoot, code: 0, want: `expires in 8`},
		"the client's":             {broker: good.TLS(), ca: goodRoot, own: own(t, issue(t, goodRoot, "old client", 3*day, false)), code: 2, want: `"CN=old client" expires in`},
		"the client's issuer":      {broker: good.TLS(), ca: goodRoot, own: own(t, issue(t, oldMiddle, "client", year, false), oldMiddle), code: 2, want: `"CN=old middle" expires in`},
		"not verified":             {broker: good.TLS(), ca: goodRoot, own: own(t, client), args: "--cert-expires 14d --tls-insecure", code: 3, want: `not verified`},
		"not verified, and a leaf": {broker: issue(t, goodRoot, "old leaf", 3*day, false).TLS(), ca: goodRoot, args: "--cert-expires 14d --tls-insecure", code: 2, want: `"CN=old leaf" expires in`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := x509.NewCertPool()
			pool.AddCert(goodRoot.Certificate)
			store := emulator.Start(t, emulator.Options{TLS: &tls.Config{Certificates: []tls.Certificate{tt.broker}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool}})
			args := append(strings.Fields(tt.args), "--ca-file", pemFile(t, tt.ca.PEM()))
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
