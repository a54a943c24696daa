package pemfile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// testPassword decrypts the encrypted keys.
const testPassword = "open sesame"

// opensslKeys creates keys and a certificate with OpenSSL, an implementation that is not ours.
func opensslKeys(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skipf("openssl is not installed: %v", err)
	}
	dir := t.TempDir()
	for _, args := range []string{
		"genrsa -traditional -out rsa-pkcs1.pem 2048",
		"rsa -in rsa-pkcs1.pem -traditional -aes256 -passout pass:PASSWORD -out rsa-legacy.pem",
		"pkcs8 -topk8 -in rsa-pkcs1.pem -v2 aes-256-cbc -passout pass:PASSWORD -out rsa-pkcs8.pem",
		"pkcs8 -topk8 -in rsa-pkcs1.pem -scrypt -passout pass:PASSWORD -out rsa-scrypt.pem",
		"req -x509 -new -key rsa-pkcs1.pem -subj /CN=test -days 1 -out rsa.crt",
		"genpkey -algorithm ed25519 -out ed25519.pem",
		"pkcs8 -topk8 -in ed25519.pem -v2 aes-256-cbc -passout pass:PASSWORD -out ed25519-pkcs8.pem",
		"pkcs8 -topk8 -in ed25519.pem -v1 PBE-SHA1-3DES -passout pass:PASSWORD -out ed25519-pbes1.pem",
		"ecparam -name prime256v1 -genkey -out ec-sec1.pem",
	} {
		words := strings.Fields(args)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "PASSWORD", testPassword)
		}
		cmd := exec.Command("openssl", words...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("openssl %s: %v\n%s", args, err, out)
		}
	}
	return dir
}

// TestReadPool: damaged certificates are counted and said once, and a file without a good one is refused.
func TestReadPool(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	good, short := encode("CERTIFICATE", der), encode("CERTIFICATE", der[:100])
	letters := strings.Replace(good, "MI", "!!", 1)
	name := filepath.Join(t.TempDir(), "ca.pem")
	for _, row := range []struct{ text, warning, err string }{
		{good + "text\n" + good, "", ""},
		{good + encode("PRIVATE KEY", der), "", ""},
		{short + good, "1 damaged certificate is skipped", ""},
		{good + letters + short, "2 damaged certificates are skipped", ""},
		{good + strings.TrimSuffix(good, "-----END CERTIFICATE-----\n"), "1 damaged certificate is skipped", ""},
		{letters + short, "", "all certificates (2) are damaged"},
		{"text", "", "holds no certificate in PEM"},
	} {
		if err := os.WriteFile(name, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var warnings []string
		pool, err := ReadPool(name, func(message string) { warnings = append(warnings, message) })
		if got := strings.Join(warnings, "; "); row.warning == "" && got != "" || row.warning != "" && got != name+": "+row.warning {
			t.Errorf("%.300s: %q, want %q", row.text, got, row.warning)
		}
		if row.err == "" && (err != nil || pool == nil) || row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)) {
			t.Errorf("%.300s: %v, want %q", row.text, err, row.err)
		}
	}
}

// TestReadKey reads keys written by OpenSSL.
func TestReadKey(t *testing.T) {
	dir := opensslKeys(t)
	for _, c := range []struct {
		file, want string
		encrypted  bool
	}{
		{"rsa-pkcs1.pem", "*rsa.PrivateKey", false},
		{"rsa-legacy.pem", "*rsa.PrivateKey", true},
		{"rsa-pkcs8.pem", "*rsa.PrivateKey", true},
		{"rsa-scrypt.pem", "*rsa.PrivateKey", true},
		{"ed25519-pkcs8.pem", "ed25519.PrivateKey", true},
		{"ec-sec1.pem", "*ecdsa.PrivateKey", false}, // the file begins with EC parameters
	} {
		text, err := os.ReadFile(filepath.Join(dir, c.file))
		if err != nil {
			t.Fatal(err)
		}
		key, err := ReadKey(text, []byte(testPassword))
		if err != nil || fmt.Sprintf("%T", key) != c.want {
			t.Errorf("%s: %T, %v, want %s", c.file, key, err, c.want)
		}
		if !c.encrypted {
			if _, err := ReadKey(text, nil); err != nil {
				t.Errorf("%s without a password: %v", c.file, err)
			}
			continue
		}
		if _, err := ReadKey(text, nil); !errors.Is(err, ErrEncrypted) {
			t.Errorf("%s without a password: %v", c.file, err)
		}
		for _, wrong := range []string{"", "open", testPassword + "\n"} {
			if _, err := ReadKey(text, []byte(wrong)); !errors.Is(err, ErrPassword) {
				t.Errorf("%s with the password %q: %v", c.file, wrong, err)
			}
		}
	}
}

// TestReadLegacyKey tries many wrong passwords: one in 256 yields valid padding.
func TestReadLegacyKey(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(opensslKeys(t), "rsa-legacy.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1500 {
		if _, err := ReadKey(text, fmt.Append(nil, "wrong", i)); !errors.Is(err, ErrPassword) {
			t.Fatalf("with the password wrong%d: %v", i, err)
		}
	}
}

func TestReadKeyUnknown(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(opensslKeys(t), "ed25519-pbes1.pem"))
	if err != nil {
		t.Fatal(err)
	}
	// An unknown cipher is not reported as a wrong password.
	if _, err := ReadKey(text, []byte(testPassword)); err == nil || errors.Is(err, ErrPassword) {
		t.Errorf("PBES1: %v", err)
	}
}

// TestReadDamagedKey: an encrypted key of the wrong length is an error.
func TestReadDamagedKey(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(opensslKeys(t), "rsa-pkcs8.pem"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	var key struct {
		Algorithm asn1.RawValue
		Encrypted []byte
	}
	if _, err := asn1.Unmarshal(block.Bytes, &key); err != nil {
		t.Fatal(err)
	}
	key.Encrypted = key.Encrypted[:len(key.Encrypted)-1]
	if block.Bytes, err = asn1.Marshal(key); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(pem.EncodeToMemory(block), []byte(testPassword)); err == nil || errors.Is(err, ErrPassword) {
		t.Errorf("%v, want that the key is damaged", err)
	}
}

func TestFits(t *testing.T) {
	dir := opensslKeys(t)
	crt, err := os.ReadFile(filepath.Join(dir, "rsa.crt"))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ReadCertificates(crt)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{"rsa-pkcs1.pem": true, "ec-sec1.pem": false} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		key, err := ReadKey(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := Fits(key, cert.Leaf); got != want {
			t.Errorf("%s fits rsa.crt: %t", file, got)
		}
	}
}
