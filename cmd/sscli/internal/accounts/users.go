package accounts

import (
	"bufio"
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"github.com/sscli/sscli/internal/files"
)

// Users maps names to passwords, which are plain text or bcrypt hashes.
type Users map[string]string

// ReadUsers reads a file with a line NAME:PASSWORD for each user. It skips empty lines and lines that begin
// with #. A name on two lines is an error: each line may have the password that was meant. An error about a
// line has the line number, and contains no password.
func ReadUsers(name string) (Users, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	u := make(Users)
	lines := bufio.NewScanner(files.NewTextReader(f))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		user, password, ok := strings.Cut(line, ":")
		if !ok || user == "" {
			return nil, fmt.Errorf("%s: line %d: expected NAME:PASSWORD", name, n)
		}
		if err := checkPassword(password); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		if _, twice := u[user]; twice {
			return nil, fmt.Errorf("%s: line %d: user %.64q is on an earlier line too: expected one line for each user", name, n, user)
		}
		u[user] = password
	}
	return u, lines.Err()
}

// checkPassword returns an error for an unsupported or damaged hash, which no password can match.
func checkPassword(password string) error {
	for _, other := range []string{"$apr1$", "$1$", "$5$", "$6$", "{SHA}"} {
		if strings.HasPrefix(password, other) {
			return fmt.Errorf("a hash that begins with %s is not known: expected one of bcrypt, as htpasswd -nbB NAME PASSWORD prints it", other)
		}
	}
	if _, err := bcrypt.Cost([]byte(password)); strings.HasPrefix(password, "$2") && err != nil {
		return errors.New("a bcrypt hash that is damaged: expected a line as htpasswd -nbB NAME PASSWORD prints it")
	}
	return nil
}

// Check reports whether the user exists and has this password. If any password is hashed, every call
// computes a hash, so that the time does not reveal which users exist, but for a login without a name and a
// password.
func (u Users) Check(name string, password []byte) bool {
	if name == "" && len(password) == 0 {
		return false // nobody has this name
	}
	want, known := u[name]
	if isHash(want) {
		return bcrypt.CompareHashAndPassword([]byte(want), password) == nil
	}
	for _, other := range u {
		if isHash(other) {
			_ = bcrypt.CompareHashAndPassword([]byte(other), password) // only to take the same time
			break
		}
	}
	return subtle.ConstantTimeCompare([]byte(want), password) == 1 && known
}

func isHash(password string) bool { return strings.HasPrefix(password, "$2") }
