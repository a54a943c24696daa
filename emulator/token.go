package emulator

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// An Issuer replaces a Kubernetes cluster in tests: it signs and verifies service-account tokens
// , which are JSON Web Tokens (RFC 7519), for one audience. Use its Verify method
// as [Options].CheckToken.
type Issuer struct {
	Key      crypto.Signer // private key: ECDSA on P-256 (ES256), RSA (RS256) or Ed25519 (EdDSA)
	Audience string
}

var errNoKey = errors.New("tokens have no key: an Issuer comes from NewIssuer, and a Verifier needs a Key")

// NewIssuer returns an issuer with a new key.
func NewIssuer(audience string) (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return &Issuer{Key: key, Audience: audience}, err
}

// method returns the signing algorithm for the type of the issuer's key.
func (i *Issuer) method() (jwt.SigningMethod, error) {
	if i.Key == nil {
		return nil, errNoKey
	}
	switch key := i.Key.Public().(type) {
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() {
			return jwt.SigningMethodES256, nil
		}
	case *rsa.PublicKey:
		return jwt.SigningMethodRS256, nil
	case ed25519.PublicKey:
		return jwt.SigningMethodEdDSA, nil
	}
	return nil, errors.New("tokens cannot be signed with this kind of key: must be ECDSA on P-256, RSA or Ed25519")
}

// Issue returns a token for subject, such as system:serviceaccount:default:sscli. The token is valid
// from now until now+life, rounded up to a whole second. If life is -1 s or less, the token has
// already expired.
func (i *Issuer) Issue(subject string, now time.Time, life time.Duration) (string, error) {
	method, err := i.method()
	if err != nil {
		return "", err
	}
	from, until := jwt.NewNumericDate(now), jwt.NewNumericDate(now.Add(life+time.Second-1))
	token, err := jwt.NewWithClaims(method, jwt.RegisteredClaims{
		Subject: subject, Audience: jwt.ClaimStrings{i.Audience}, IssuedAt: from, NotBefore: from, ExpiresAt: until,
	}).SignedString(i.Key)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return token, nil
}

// Verify does the same checks as [Verifier.Verify], with the issuer's key.
func (i *Issuer) Verify(token []byte, now time.Time) (Login, error) {
	if i.Key == nil {
		return Login{}, errNoKey
	}
	v := Verifier{Audience: i.Audience, Key: func(string) (crypto.PublicKey, error) { return i.Key.Public(), nil }}
	return v.Verify(token, now)
}

// A Verifier verifies service-account tokens from a Kubernetes cluster with the cluster's public
// keys. Use its Verify method as [Options].CheckToken. Unlike the cluster, a Verifier does not
// check whether the token's account still exists.
type Verifier struct {
	Audience string
	Issuer   string // the issuer that a token must name; "" = any issuer

	// Key returns the public key with the given id, as a *rsa.PublicKey, *ecdsa.PublicKey or
	// ed25519.PublicKey.
	Key func(id string) (crypto.PublicKey, error)
}

// Verify returns the user and the expiry of a token. It checks the signature, the audience, the issuer
// (unless v.Issuer is empty), and that the token is valid at the time now, without tolerance for clock
// differences.
func (v *Verifier) Verify(token []byte, now time.Time) (Login, error) {
	if v.Key == nil {
		return Login{}, errNoKey
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods([]string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "EdDSA"}),
		jwt.WithAudience(v.Audience), jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return now }), jwt.WithStrictDecoding(),
	}
	if v.Issuer != "" {
		options = append(options, jwt.WithIssuer(v.Issuer))
	}
	var claims jwt.RegisteredClaims
	_, err := jwt.NewParser(options...).ParseWithClaims(string(token), &claims, func(t *jwt.Token) (any, error) {
		if critical, ok := t.Header["crit"]; ok { // RFC 7515, 4.1.11
			return nil, fmt.Errorf("the token has critical header parameters that are not known: %.64q", fmt.Sprint(critical))
		}
		id, _ := t.Header["kid"].(string)
		return v.Key(id)
	})
	switch {
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return Login{}, fmt.Errorf("the token is for the audience %.64q: expected %q", []string(claims.Audience), v.Audience)
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return Login{}, fmt.Errorf("the token is of another issuer, %.128q", claims.Issuer)
	case errors.Is(err, jwt.ErrTokenExpired):
		return Login{}, fmt.Errorf("the token expired at %s", claims.ExpiresAt.UTC().Format(time.RFC3339))
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return Login{}, fmt.Errorf("the token is not valid before %s", claims.NotBefore.UTC().Format(time.RFC3339))
	case err != nil:
		return Login{}, err
	}
	return Login{User: claims.Subject, Expires: claims.ExpiresAt.Time}, nil
}
