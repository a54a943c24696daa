package accounts

import (
	"bufio"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/files"
)

// Users maps names to passwords, which are plain text or bcrypt hashes. Plain text that looks like a hash has
// {PLAIN} before it.
type Users map[string]string

// plain is put before a password that only looks like a hash.
const plain = "{PLAIN}"

// hashes matches the hashes that other tools write, up to the end of their name: those of crypt(3), mosquitto_passwd and
// PHC ($7$, $argon2id$), of LDAP and Dovecot ({SSHA}), of Django and Werkzeug (pbkdf2_sha256$), of PostgreSQL, MySQL and
// Redis.
func hashes() *regexp.Regexp {
	return regexp.MustCompile(`^(\$[[:alnum:]][\w.,=-]*\$|\{[[:alnum:]][\w./:-]*\}|(?i:pbkdf2|bcrypt|argon2|scrypt|sha\d|md5|scram-|crypt)[\w:.-]*\$|md5[[:xdigit:]]{32}$|\*[[:xdigit:]]{40}$|#[[:xdigit:]]{64}$)`)
}

// ReadUsers reads a file with a line NAME:PASSWORD for each user. It skips empty lines and lines that begin
// with #. A name on two lines is an error: each line may have the password that was meant. An error about a
// line has the line number, and contains no password.
func ReadUsers(name string) (Users, error) {
	f, err := files.Open(name)
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
			return nil, fmt.Errorf("%s: expected NAME:PASSWORD", format.Location(name, n, 0))
		}
		if err := checkPassword(password); err != nil {
			return nil, fmt.Errorf("%s: %w", format.Location(name, n, 0), err)
		}
		if _, twice := u[user]; twice {
			return nil, fmt.Errorf("%s: user %.64q is on an earlier line too: expected one line for each user", format.Location(name, n, 0), user)
		}
		u[user] = password
	}
	return u, lines.Err()
}

// checkPassword returns an error for an unsupported or damaged hash: taken as plain text, it would let everybody in who
// can read the file, and keep its owner out.
func checkPassword(password string) error {
	if _, err := bcrypt.Cost([]byte(password)); err == nil || strings.HasPrefix(password, plain) {
		return nil
	}
	const expected = "expected a line of htpasswd -nbB NAME PASSWORD"
	if isHash(password) {
		return errors.New("a bcrypt hash that is damaged: " + expected)
	}
	name := hashes().FindString(password)
	switch {
	case name == "":
		return nil
	case len(name) == len(password): // the whole hash, which must not be printed
		name = name[:1]
	}
	return fmt.Errorf("a hash that begins with %.32s is not known: %s, or %s before plain text", name, expected, plain)
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
	return subtle.ConstantTimeCompare([]byte(strings.TrimPrefix(want, plain)), password) == 1 && known
}

func isHash(password string) bool { return strings.HasPrefix(password, "$2") }
