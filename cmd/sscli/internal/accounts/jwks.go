package accounts

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/internal/files"
)

const (
	maxKeySet    = 1 << 20          // bytes
	fetchTimeout = 5 * time.Second  // for a URL
	minReadPause = 10 * time.Second // minimum time between two reads that unknown keys cause
	maxReadWait  = time.Second      // how long a login may wait for a read; other logins may have to wait for it
)

// clusterKeys holds the public keys of the cluster that signs the tokens. It reads the keys again when
// a token names an unknown key, because clusters rotate their keys.
type clusterKeys struct {
	source string                                // file or URL
	keys   atomic.Pointer[map[string]clusterKey] // by id

	mu   sync.Mutex
	last time.Time // start of the last read that an unknown key caused; guarded by mu
}

// A clusterKey is a key of a key set, or the reason why it cannot be used.
type clusterKey struct {
	public crypto.PublicKey // nil if err is set
	err    error
}

func (c *clusterKeys) read() error {
	text, err := readSource(c.source)
	if err != nil {
		return err
	}
	keys, err := parseKeySet(text)
	if err != nil {
		return fmt.Errorf("%s: %w", c.source, err)
	}
	c.keys.Store(&keys)
	return nil
}

// key returns the key with the given id. For an unknown id it first reads the keys again, at most
// once in minReadPause, and waits at most maxReadWait: anybody can send tokens with unknown ids,
// and the source may be slow.
func (c *clusterKeys) key(id string) (crypto.PublicKey, error) {
	if key := (*c.keys.Load())[id]; key.public != nil {
		return key.public, nil
	}
	if c.mayRead() {
		read := make(chan error, 1)
		go func() { read <- c.read() }()
		select {
		case err := <-read:
			if err != nil {
				return nil, err
			}
		case <-time.After(maxReadWait):
			return nil, fmt.Errorf("%s: no answer within %v", c.source, maxReadWait)
		}
	}
	switch key := (*c.keys.Load())[id]; {
	case key.public != nil:
		return key.public, nil
	case key.err != nil:
		return nil, fmt.Errorf("%s: key %.64q: %w", c.source, id, key.err)
	}
	return nil, fmt.Errorf("the token is signed with a key that is not in %s: %.64q", c.source, id)
}

// mayRead reports whether an unknown key may cause a read now. If so, it sets c.last to the current
// time.
func (c *clusterKeys) mayRead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.last) < minReadPause {
		return false
	}
	c.last = time.Now()
	return true
}

func readSource(source string) ([]byte, error) {
	if !strings.HasPrefix(source, "http://") && !strings.HasPrefix(source, "https://") {
		return files.ReadFile(source, maxKeySet)
	}
	httpClient := http.Client{Timeout: fetchTimeout}
	response, err := httpClient.Get(source)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", source, response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxKeySet+1))
	if err == nil && len(text) > maxKeySet {
		err = fmt.Errorf("%s: a key set of more than %d bytes", source, maxKeySet)
	}
	return text, err
}

// A webKey is a public key in a JSON Web Key Set (RFC 7517; RFC 7518, section 6).
type webKey struct {
	ID    string `json:"kid"`
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	N     string `json:"n"`
	E     string `json:"e"`
	X     string `json:"x"`
	Y     string `json:"y"`
}

// parseKeySet returns the keys in a JSON Web Key Set, by their ids. It skips keys of a type that
// clusters do not sign with. A key that cannot be used does not affect the others (RFC 7517, section 5); if
// no key can be used, the error is about the first.
func parseKeySet(text []byte) (map[string]clusterKey, error) {
	var set struct {
		Keys []webKey `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("not a JSON Web Key Set: %w", err)
	}
	keys := make(map[string]clusterKey)
	var first error
	usable := false
	for _, k := range set.Keys {
		public, err := k.public()
		switch {
		case err != nil:
			if keys[k.ID].public == nil {
				keys[k.ID] = clusterKey{err: err}
			}
			first = cmp.Or(first, fmt.Errorf("key %.64q: %w", k.ID, err))
		case public != nil:
			keys[k.ID], usable = clusterKey{public: public}, true
		}
	}
	if !usable {
		return nil, cmp.Or(first, errors.New("no key in the JSON Web Key Set"))
	}
	return keys, nil
}

// public returns the key, or nil if clusters do not sign with keys of its type.
func (k webKey) public() (crypto.PublicKey, error) {
	switch k.Type {
	case "RSA":
		n, errN := number(k.N)
		e, errE := number(k.E)
		if err := errors.Join(errN, errE); err != nil {
			return nil, err
		}
		const least, most = 2048, 16384 // bits
		if bits := n.BitLen(); bits < least || bits > most || !e.IsInt64() || e.Int64() < 3 || e.Int64() > 1<<31-1 {
			return nil, errors.New("an RSA key that is too short or too long")
		}
		return &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
	case "EC":
		return k.elliptic()
	case "OKP":
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || k.Curve != "Ed25519" || len(x) != ed25519.PublicKeySize {
			return nil, errors.New("expected an Ed25519 key")
		}
		return ed25519.PublicKey(x), nil
	}
	return nil, nil
}

func (k webKey) elliptic() (crypto.PublicKey, error) {
	curves := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}
	curve := curves[k.Curve]
	if curve == nil {
		return nil, fmt.Errorf("curve %.16q: expected P-256, P-384 or P-521", k.Curve)
	}
	x, errX := base64.RawURLEncoding.DecodeString(k.X)
	y, errY := base64.RawURLEncoding.DecodeString(k.Y)
	if err := errors.Join(errX, errY); err != nil {
		return nil, err
	}
	size := (curve.Params().BitSize + 7) / 8
	if len(x) != size || len(y) != size {
		return nil, errors.New("coordinates of the wrong length")
	}
	return ecdsa.ParseUncompressedPublicKey(curve, append(append([]byte{4}, x...), y...))
}

func number(text string) (*big.Int, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	return new(big.Int).SetBytes(b), err
}
