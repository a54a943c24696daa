package client

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/mqtt"
)

// methodSAT is the authentication method of Kubernetes service-account tokens.
const methodSAT = "K8S-SAT"

// DefaultTokenPoll is the interval at which a session reads the token file. The session polls
// because Kubernetes replaces the file's directory, which a file watch would miss.
const DefaultTokenPoll = 5 * time.Second

// A TokenError means that a service-account token is unusable. If Expiry is set, the broker
// refused the login and the token had expired by the local clock. Otherwise no token could be read
// from File.
type TokenError struct {
	File   string // empty if the token is from Options.ReadToken
	Expiry time.Time
	Err    error // if Expiry is set, the broker's refusal
}

func (e *TokenError) Error() string {
	if e.Expiry.IsZero() {
		return fmt.Sprintf("service-account token in %s: %v", e.File, e.Err)
	}
	if e.File == "" {
		return fmt.Sprintf("the service-account token expired at %s: %v", e.Expiry.Format(time.RFC3339), e.Err)
	}
	return fmt.Sprintf("the token in %s expired at %s: %v", e.File, e.Expiry.Format(time.RFC3339), e.Err)
}

func (e *TokenError) Unwrap() error { return e.Err }

// ReadToken reads a service-account token from a file, without trailing white space: a newline is
// not part of the token. A file in UTF-16 must begin with a byte order mark, as
// Windows PowerShell writes it. The error is a *TokenError.
func ReadToken(file string) ([]byte, error) {
	f, err := files.Open(file)
	if err != nil {
		return nil, noToken(file, err)
	}
	defer f.Close()
	token, err := io.ReadAll(io.LimitReader(f, math.MaxUint16+1))
	if err != nil {
		return nil, noToken(file, err)
	}
	if len(token) > math.MaxUint16 {
		return nil, &TokenError{File: file, Err: fmt.Errorf("more than %d bytes, too long for a token", math.MaxUint16)}
	}
	if token, err = files.DecodeText(token); err != nil {
		return nil, &TokenError{File: file, Err: err}
	}
	token = bytes.TrimRight(token, " \t\r\n")
	if len(token) == 0 {
		return nil, &TokenError{File: file, Err: errors.New("the file is empty")}
	}
	return token, nil
}

// noToken returns a TokenError for err. It removes the file name from err, because TokenError.Error adds
// the name.
func noToken(file string, err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		err = path.Err
	}
	return &TokenError{File: file, Err: err}
}

// TokenTimes returns when a JWT was issued and when it expires, according to its claims. A time
// is zero if its claim is missing. TokenTimes does not check the signature; the broker does.
func TokenTimes(token []byte) (issued, expires time.Time) {
	parts := bytes.Split(token, []byte("."))
	if len(parts) != 3 {
		return issued, expires
	}
	payload, err := base64.RawURLEncoding.AppendDecode(nil, parts[1])
	if err != nil {
		return issued, expires
	}
	var claims struct {
		IssuedAt any `json:"iat"`
		Expires  any `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return issued, expires
	}
	return numericDate(claims.IssuedAt), numericDate(claims.Expires)
}

// numericDate converts seconds since 1970 (RFC 7519, 2). It returns the zero time if the value is
// not a number, not positive, or too large.
func numericDate(v any) time.Time {
	const year9999 = 253402300799
	seconds, ok := v.(float64)
	if !ok || seconds <= 0 || seconds > year9999 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

// renewalAt returns when 80 % of a token's lifetime will have passed. It
// returns the zero time if the token has no expiry, or if 80 % have already passed.
func renewalAt(token []byte, now time.Time) time.Time {
	issued, expires := TokenTimes(token)
	if expires.IsZero() {
		return time.Time{}
	}
	if issued.IsZero() {
		issued = now
	}
	at := issued.Add(expires.Sub(issued) / 5 * 4)
	if !at.After(now) {
		return time.Time{}
	}
	return at
}

// keepToken authenticates again on a connection when there is a new token, or when 80 % of the old
// token's lifetime have passed. It returns when the connection has ended.
func (s *Session) keepToken(conn *mqtt.Conn, token []byte) {
	renewal := renewalAt(token, time.Now())
	timer := time.NewTimer(untilNextRead(s.o.TokenPoll, renewal))
	defer timer.Stop()
	for ; ; timer.Reset(untilNextRead(s.o.TokenPoll, renewal)) {
		select {
		case <-timer.C:
		case <-conn.Done():
			return
		}
		next, err := s.o.Token(s.ctx)
		if err != nil {
			continue // the token may be changing; if it is really gone, the next login reports that
		}
		due := !renewal.IsZero() && !time.Now().Before(renewal)
		if bytes.Equal(next, token) && !due {
			continue
		}
		if s.reauthenticate(conn) != nil {
			// After a refusal the connection has ended, and the next login reads the token again.
			// If the broker cannot verify the token now, the loop tries again.
			continue
		}
		token, renewal = next, renewalAt(next, time.Now())
		s.setTried(token)
	}
}

// untilNextRead returns how long to wait before reading the token again.
func untilNextRead(poll time.Duration, renewal time.Time) time.Duration {
	if left := time.Until(renewal); !renewal.IsZero() && left > 0 {
		return min(poll, left)
	}
	return poll
}

func (s *Session) reauthenticate(conn *mqtt.Conn) error {
	ctx, cancel := s.limit(s.ctx)
	defer cancel()
	return conn.Reauthenticate(ctx)
}

// explainLogin adds a TokenError to the DialError of a refused login if the token has expired.
func (s *Session) explainLogin(err error, token []byte) error {
	refused, ok := errors.AsType[*mqtt.DialError](err)
	if !ok || !s.o.hasToken() || !isLoginRefusal(err) {
		return err
	}
	_, expires := TokenTimes(token)
	if expires.IsZero() || time.Now().Before(expires) {
		return err
	}
	return &mqtt.DialError{Stage: refused.Stage, Address: refused.Address, Err: &TokenError{s.o.TokenFile, expires, refused.Err}}
}
