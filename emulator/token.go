package emulator

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
)

// An Issuer signs and verifies service-account tokens (protocol.md 7.2), in place
// of a Kubernetes cluster: JSON Web Tokens (RFC 7519) for one audience. Verify is for
// [Options].VerifyToken.
type Issuer struct {
	Key      crypto.Signer // ECDSA on P-256 (ES256), RSA (RS256) or Ed25519 (EdDSA)
	Audience string
}

// NewIssuer returns an issuer with a key of its own.
func NewIssuer(audience string) (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return &Issuer{Key: key, Audience: audience}, err
}

type tokenHeader struct {
	Algorithm string `json:"alg"`
	Type      string `json:"typ,omitempty"`
}

type tokenClaims struct {
	Subject   string      `json:"sub,omitempty"`
	Audience  audiences   `json:"aud"`
	IssuedAt  *numberDate `json:"iat,omitempty"`
	NotBefore *numberDate `json:"nbf,omitempty"`
	Expires   *numberDate `json:"exp"`
}

// audiences are one string or several (RFC 7519, 4.1.3).
type audiences []string

func (a *audiences) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// numberDate is seconds since 1970, with a fraction perhaps.
type numberDate float64

func (d *numberDate) time() time.Time {
	const most = 1e11 // some thousand years, which the arithmetic can bear
	return time.UnixMilli(int64(max(-most, min(float64(*d), most)) * 1000))
}

func dateOf(t time.Time) *numberDate {
	d := numberDate(t.Unix())
	return &d
}

// Issue returns a token for subject, such as system:serviceaccount:default:sscli, from
// now for that long, up to the next whole second.
func (i *Issuer) Issue(subject string, now time.Time, life time.Duration) (string, error) {
	algorithm, err := i.algorithm()
	if err != nil {
		return "", err
	}
	head, err := json.Marshal(tokenHeader{algorithm, "JWT"})
	if err != nil {
		return "", err
	}
	// A token whose life is negative has ended before it began.
	claims, err := json.Marshal(tokenClaims{subject, audiences{i.Audience}, dateOf(now), dateOf(now), dateOf(now.Add(life + time.Second - 1))})
	if err != nil {
		return "", err
	}
	signed := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(claims)
	signature, err := i.sign(signed)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// Verify tells whose token it is. Its signature is checked, its audience, and that now
// lies within its life; there is no tolerance for clocks.
func (i *Issuer) Verify(token []byte, now time.Time) (Login, error) {
	parts := strings.Split(string(token), ".")
	if len(parts) != 3 {
		return Login{}, errors.New("not a JSON Web Token: want three parts with dots between them")
	}
	var head tokenHeader
	if err := decodePart(parts[0], &head); err != nil {
		return Login{}, fmt.Errorf("header of the token: %w", err)
	}
	algorithm, err := i.algorithm()
	if err != nil {
		return Login{}, err
	}
	if head.Algorithm != algorithm {
		return Login{}, fmt.Errorf("the token is signed with %.16q: want %s", head.Algorithm, algorithm)
	}
	signature, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil || !i.signed(parts[0]+"."+parts[1], signature) {
		return Login{}, errors.New("the token's signature does not match the key")
	}
	var claims tokenClaims
	if err := decodePart(parts[1], &claims); err != nil {
		return Login{}, fmt.Errorf("claims of the token: %w", err)
	}
	switch {
	case !slices.Contains(claims.Audience, i.Audience):
		return Login{}, fmt.Errorf("the token is for the audience %.64q: want %q", claims.Audience, i.Audience)
	case claims.Expires == nil:
		return Login{}, errors.New("the token has no end (exp)")
	case !now.Before(claims.Expires.time()):
		return Login{}, fmt.Errorf("the token expired at %s", claims.Expires.time().UTC().Format(time.RFC3339))
	case claims.NotBefore != nil && now.Before(claims.NotBefore.time()):
		return Login{}, fmt.Errorf("the token is not valid before %s", claims.NotBefore.time().UTC().Format(time.RFC3339))
	}
	return Login{User: claims.Subject, Expires: claims.Expires.time()}, nil
}

func decodePart(part string, to any) error {
	text, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// coordinate is the length in bytes of the halves of an ES256 signature.
const coordinate = 32

func (i *Issuer) algorithm() (string, error) {
	switch key := i.Key.Public().(type) {
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() {
			return "ES256", nil
		}
	case *rsa.PublicKey:
		return "RS256", nil
	case ed25519.PublicKey:
		return "EdDSA", nil
	}
	return "", errors.New("tokens cannot be signed with this kind of key: want ECDSA on P-256, RSA or Ed25519")
}

func (i *Issuer) sign(text string) ([]byte, error) {
	digest := sha256.Sum256([]byte(text))
	switch key := i.Key.(type) {
	case ed25519.PrivateKey:
		return ed25519.Sign(key, []byte(text)), nil
	case *ecdsa.PrivateKey: // RFC 7518, 3.4: not in ASN.1
		r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			return nil, err
		}
		return append(r.FillBytes(make([]byte, coordinate)), s.FillBytes(make([]byte, coordinate))...), nil
	}
	return i.Key.Sign(rand.Reader, digest[:], crypto.SHA256)
}

func (i *Issuer) signed(text string, signature []byte) bool {
	digest := sha256.Sum256([]byte(text))
	switch key := i.Key.Public().(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, []byte(text), signature)
	case *ecdsa.PublicKey:
		if len(signature) != 2*coordinate {
			return false
		}
		r, s := new(big.Int).SetBytes(signature[:coordinate]), new(big.Int).SetBytes(signature[coordinate:])
		return ecdsa.Verify(key, digest[:], r, s)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) == nil
	}
	return false
}
