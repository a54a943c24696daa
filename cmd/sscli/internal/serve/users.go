package serve

import (
	"bufio"
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// users are passwords by name, plain or hashed by bcrypt.
type users map[string]string

func readUsers(name string) (users, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	u := make(users)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		user, password, ok := strings.Cut(line, ":")
		if !ok || user == "" {
			return nil, fmt.Errorf("%s: line %d: want NAME:PASSWORD", name, n)
		}
		if err := checkPassword(password); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		u[user] = password
	}
	return u, lines.Err()
}

// checkPassword refuses hashes that nobody's password would fit.
func checkPassword(password string) error {
	for _, other := range []string{"$apr1$", "$1$", "$5$", "$6$", "{SHA}"} {
		if strings.HasPrefix(password, other) {
			return fmt.Errorf("a hash that begins with %s is not known: want one of bcrypt, as htpasswd -nbB NAME PASSWORD prints it", other)
		}
	}
	if _, err := bcrypt.Cost([]byte(password)); strings.HasPrefix(password, "$2") && err != nil {
		return errors.New("a bcrypt hash that is damaged: want a line as htpasswd -nbB NAME PASSWORD prints it")
	}
	return nil
}

func (u users) check(name string, password []byte) bool {
	want, ok := u[name]
	switch {
	case !ok:
		return false
	case strings.HasPrefix(want, "$2"):
		return bcrypt.CompareHashAndPassword([]byte(want), password) == nil
	}
	return subtle.ConstantTimeCompare([]byte(want), password) == 1
}

// tokens are service-account tokens.
type tokens [][]byte

func readTokens(name string) (tokens, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var t tokens
	for line := range bytes.Lines(text) {
		if token := bytes.TrimSpace(line); len(token) > 0 {
			t = append(t, token)
		}
	}
	if len(t) == 0 {
		return nil, fmt.Errorf("%s holds no token", name)
	}
	return t, nil
}

func (t tokens) check(token []byte) bool {
	return slices.ContainsFunc(t, func(known []byte) bool { return subtle.ConstantTimeCompare(known, token) == 1 })
}
