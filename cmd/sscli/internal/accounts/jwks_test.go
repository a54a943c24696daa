package accounts

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/emulator"
)

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// keySet returns a JSON Web Key Set of public keys by key ID.
func keySet(t *testing.T, keys map[string]crypto.Signer) string {
	t.Helper()
	var list []map[string]string
	for id, key := range keys {
		k := map[string]string{"kid": id, "use": "sig"}
		switch p := key.Public().(type) {
		case *rsa.PublicKey:
			k["kty"], k["n"], k["e"] = "RSA", encode(p.N.Bytes()), encode(big.NewInt(int64(p.E)).Bytes())
		case *ecdsa.PublicKey:
			point, err := p.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			half := (len(point) - 1) / 2
			k["kty"], k["crv"], k["x"], k["y"] = "EC", p.Curve.Params().Name, encode(point[1:1+half]), encode(point[1+half:])
		case ed25519.PublicKey:
			k["kty"], k["crv"], k["x"] = "OKP", "Ed25519", encode(p)
		}
		list = append(list, k)
	}
	list = append(list, map[string]string{"kid": "symmetric", "kty": "oct"},
		map[string]string{"kid": "secp256k1", "kty": "EC", "crv": "secp256k1"}, map[string]string{"kid": "damaged", "kty": "RSA", "n": "!"},
		map[string]string{"kid": "no point", "kty": "EC", "crv": "P-256", "x": encode(make([]byte, 32)), "y": encode(make([]byte, 32))})
	text, err := json.Marshal(map[string]any{"keys": list})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func sign(t *testing.T, id string, key crypto.Signer, claims jwt.RegisteredClaims) []byte {
	t.Helper()
	var method jwt.SigningMethod = jwt.SigningMethodRS256
	switch p := key.Public().(type) {
	case *ecdsa.PublicKey:
		method = map[int]jwt.SigningMethod{256: jwt.SigningMethodES256, 384: jwt.SigningMethodES384, 521: jwt.SigningMethodES512}[p.Curve.Params().BitSize]
	case ed25519.PublicKey:
		method = jwt.SigningMethodEdDSA
	}
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = id
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

func signers(t *testing.T) map[string]crypto.Signer {
	t.Helper()
	keys := make(map[string]crypto.Signer)
	var err error
	if keys["rsa"], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if _, keys["ed"], err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	for id, curve := range map[string]elliptic.Curve{"p256": elliptic.P256(), "p384": elliptic.P384(), "p521": elliptic.P521()} {
		if keys[id], err = ecdsa.GenerateKey(curve, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

func TestClusterKeys(t *testing.T) {
	keys := signers(t)
	file := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(file, []byte(keySet(t, keys)), 0o600); err != nil {
		t.Fatal(err)
	}
	served := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(file))))
	defer served.Close()
	now := time.Unix(1696374425, 0)
	claims := func(change func(*jwt.RegisteredClaims)) jwt.RegisteredClaims {
		c := jwt.RegisteredClaims{Subject: "system:serviceaccount:a:b", Audience: jwt.ClaimStrings{"aio-internal"}, Issuer: "https://kubernetes",
			ExpiresAt: jwt.NewNumericDate(now.Add(time.Hour))}
		change(&c)
		return c
	}
	none := func(*jwt.RegisteredClaims) {}
	for _, source := range []string{file, served.URL + "/jwks.json"} {
		var o emulator.Options
		f := Flags{Audience: "aio-internal", Issuer: "https://kubernetes", JWKS: "", User: defaultAccount, TTL: defaultLife()}
		if err := f.JWKS.Set(source); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Open(&o, "", false); err != nil {
			t.Fatal(err)
		}
		for id, key := range keys {
			login, err := o.CheckToken(sign(t, id, key, claims(none)), now)
			if err != nil || login.User != "system:serviceaccount:a:b" || !login.Expires.Equal(now.Add(time.Hour)) {
				t.Errorf("%s: %+v, %v", id, login, err)
			}
		}
		for want, token := range map[string][]byte{
			"expired at":          sign(t, "rsa", keys["rsa"], claims(func(c *jwt.RegisteredClaims) { c.ExpiresAt = jwt.NewNumericDate(now) })),
			"audience":            sign(t, "rsa", keys["rsa"], claims(func(c *jwt.RegisteredClaims) { c.Audience = jwt.ClaimStrings{"other"} })),
			"another issuer":      sign(t, "rsa", keys["rsa"], claims(func(c *jwt.RegisteredClaims) { c.Issuer = "https://other" })),
			"not in":              sign(t, "other", keys["rsa"], claims(none)),
			`"secp256k1": curve`:  sign(t, "secp256k1", keys["p256"], claims(none)),
			`"no point": `:        sign(t, "no point", keys["p256"], claims(none)),
			`"damaged": illegal`:  sign(t, "damaged", keys["rsa"], claims(none)),
			"signature is inval":  sign(t, "p256", signers(t)["p256"], claims(none)),
			"key is of invalid t": sign(t, "ed", keys["rsa"], claims(none)),
		} {
			if _, err := o.CheckToken(token, now); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

// TestClusterKeyRotation: a key that the cluster added after the first read is found.
func TestClusterKeyRotation(t *testing.T) {
	keys := signers(t)
	file := filepath.Join(t.TempDir(), "jwks.json")
	write := func(set map[string]crypto.Signer) {
		if err := os.WriteFile(file, []byte(keySet(t, set)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(map[string]crypto.Signer{"old": keys["rsa"]})
	c := &clusterKeys{source: file, last: time.Now().Add(time.Hour)}
	if err := c.read(); err != nil {
		t.Fatal(err)
	}
	write(map[string]crypto.Signer{"new": keys["p256"]})
	if _, err := c.key("new"); err == nil {
		t.Error("the keys were read again at once, so anybody could make us read")
	}
	c.last = time.Now().Add(-time.Minute)
	if _, err := c.key("new"); err != nil {
		t.Error(err)
	}
}

// TestSlowKeyServer: while the keys are read again, a token with a known key does not wait, and a token with an unknown
// key waits only briefly.
func TestSlowKeyServer(t *testing.T) {
	t.Parallel()
	set := keySet(t, signers(t))
	for range 20 { // a machine that stands still for maxReadWait looks like keys that wait
		if keysDoNotWait(t, set) {
			return
		}
	}
	t.Error("the other keys waited")
}

// keysDoNotWait reports whether other keys were looked up before an unknown key stopped waiting for its read.
func keysDoNotWait(t *testing.T, set string) bool {
	asked, answer := make(chan struct{}), make(chan struct{})
	reads := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch reads++; reads {
		case 1:
		case 2:
			close(asked)
			fallthrough
		default: // another read, after minReadPause
			<-answer
		}
		_, _ = w.Write([]byte(set))
	}))
	defer server.Close()
	c := &clusterKeys{source: server.URL}
	if err := c.read(); err != nil {
		t.Fatal(err)
	}
	unknown := make(chan error, 1)
	go func() {
		_, err := c.key("unknown")
		unknown <- err
	}()
	<-asked
	for id, key := range *c.keys.Load() {
		if _, err := c.key(id); key.public != nil && err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := c.key("other"); err == nil {
		t.Error("another unknown key was found")
	}
	waits := len(unknown) == 0
	if err := <-unknown; err == nil || !strings.Contains(err.Error(), "no answer within") {
		t.Errorf("unknown key: %v", err)
	}
	close(answer)
	return waits
}

func TestKeySetErrors(t *testing.T) {
	for text, want := range map[string]string{
		"x": "not a JSON Web Key Set", "{}": "no key", `{"keys":[{"kty":"oct"}]}`: "no key",
		`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`:         "too short",
		`{"keys":[{"kty":"RSA","n":"!","e":"AQAB"}]}`:            "illegal base64",
		`{"keys":[{"kty":"EC","crv":"P-224"}]}`:                  "expected P-256",
		`{"keys":[{"kty":"EC","crv":"P-256","x":"AQ","y":"A"}]}`: "illegal base64",
		`{"keys":[{"kty":"OKP","crv":"X25519","x":"AQ"}]}`:       "expected an Ed25519 key",
	} {
		if _, err := parseKeySet([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte(" "), maxKeySet+1))
	}))
	defer server.Close()
	if _, err := readSource(server.URL); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("a large key set: %v", err)
	}
	for args, want := range map[string]Flags{
		"add --sat-audience": {JWKS: "f", User: defaultAccount, TTL: defaultLife()},
		"add --sat-jwks":     {Issuer: "i", User: defaultAccount, TTL: defaultLife()},
		"the cluster issues": {JWKS: "f", Audience: "a", Key: "k", User: defaultAccount, TTL: defaultLife()},
	} {
		if err := want.Check(false, true); err == nil || !strings.Contains(err.Error(), args) {
			t.Errorf("%v, want %s", err, args)
		}
	}
}

// FuzzKeySet: every key that is read from a set can verify signatures, whatever the set contains.
func FuzzKeySet(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kid":"a","kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`))
	f.Add([]byte(`{"keys":[{"kid":"a","kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseKeySet(text)
		if (err == nil) != (len(keys) > 0) {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		for id, key := range keys {
			v := emulator.Verifier{Audience: "a", Key: func(string) (crypto.PublicKey, error) { return key, nil }}
			for _, alg := range []string{"RS256", "ES256", "EdDSA"} {
				token := encode([]byte(`{"alg":"`+alg+`","kid":"a"}`)) + "." + encode([]byte(`{"aud":"a","exp":9999999999}`)) + "." + encode(make([]byte, 64))
				if _, err := v.Verify([]byte(token), time.Now()); err == nil {
					t.Errorf("key %q verifies a forged token", id)
				}
			}
		}
	})
}

// defaultLife is the value of --sat-ttl without the flag.
func defaultLife() (d usage.Duration) {
	_ = d.Set(defaultSATLife)
	return d
}
