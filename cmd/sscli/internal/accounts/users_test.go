package accounts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/sscli/sscli/cmd/sscli/internal/accounts"
)

func TestCheck(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("hashed"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "users")
	text := "# a comment\n\nann:secret\r\nbob:" + string(hash) + "\ncolon:a:b\nempty:\nodd:{PLAIN}$7$x$y\ndollar:a$b$c\nhex:0123456789abcdef0123456789abcdef\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := accounts.ReadUsers(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		user, password string
		want           bool
	}{
		{"ann", "secret", true},
		{"ann", "Secret", false},
		{"ann", "", false},
		{"ann", "secret\r", false},
		{"bob", "hashed", true},
		{"bob", string(hash), false},
		{"colon", "a:b", true},
		{"empty", "", true},
		{"odd", "$7$x$y", true},
		{"odd", "{PLAIN}$7$x$y", false},
		{"dollar", "a$b$c", true},
		{"hex", "0123456789abcdef0123456789abcdef", true},
		{"nobody", "", false},
		{"", "", false},
		{"# a comment", "", false},
	} {
		if got := u.Check(c.user, []byte(c.password)); got != c.want {
			t.Errorf("%q with %q: %t, want %t", c.user, c.password, got, c.want)
		}
	}
	for text, want := range map[string]string{
		"ann":            ":1: expected NAME:PASSWORD",
		"a:b\n:password": ":2: expected NAME:PASSWORD",
		"a:$2y$05$short": ":1: a bcrypt hash that is damaged: expected a line of htpasswd -nbB NAME PASSWORD",
		"a:1\nb:2\na:1":  `:3: user "a" is on an earlier line too: expected one line for each user`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := accounts.ReadUsers(name); err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "password") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestOtherHashes: what has the shape of a hash is no password, whichever tool wrote it.
func TestOtherHashes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "users")
	for text, kind := range map[string]string{
		"$7$101$zmM/IQ==$Kd2w==":              "$7$", // mosquitto_passwd
		"$6$salt$hash":                        "$6$",
		"$5$rounds=5000$salt$hash":            "$5$",
		"$1$salt$hash":                        "$1$",
		"$apr1$x$y":                           "$apr1$",
		"$argon2id$v=19$m=65536$c2FsdA$aGFz":  "$argon2id$",
		"$argon2i$v=19$m=65536$c2FsdA$aGFz":   "$argon2i$",
		"$y$j9T$salt$hash":                    "$y$",
		"$gy$j9T$salt$hash":                   "$gy$",
		"$scrypt$ln=16,r=8,p=1$c2FsdA$aGFz":   "$scrypt$",
		"$pbkdf2-sha512$i=100000$c2FsdA$aGFz": "$pbkdf2-sha512$",
		"$pbkdf2$1000$c2FsdA$aGFz":            "$pbkdf2$",
		"$sha1$480000$salt$hash":              "$sha1$",
		"$md5,rounds=5000$salt$hash":          "$md5,rounds=5000$",
		"$bcrypt-sha256$v=2,t=2b,r=12$salt$h": "$bcrypt-sha256$",
		"{SHA}W6ph5M=":                        "{SHA}",
		"{SSHA}W6ph5M=":                       "{SSHA}",
		"{ssha512}W6ph5M=":                    "{ssha512}",
		"{BCRYPT}$2y$05$abc":                  "{BCRYPT}",
		"{CRYPT}$6$salt$hash":                 "{CRYPT}",
		"{PBKDF2-SHA256}10000$salt$hash":      "{PBKDF2-SHA256}",
		"{SHA256.b64}W6ph5M=":                 "{SHA256.b64}",
		"pbkdf2_sha256$260000$salt$hash":      "pbkdf2_sha256$",
		"pbkdf2:sha256:600000$salt$hash":      "pbkdf2:sha256:600000$",
		"bcrypt$$2b$12$abc":                   "bcrypt$",
		"SCRAM-SHA-256$4096:salt$stored":      "SCRAM-SHA-256$",
		"md5" + strings.Repeat("0a", 16):      "m",
		"*" + strings.Repeat("0A", 20):        "*",
		"#" + strings.Repeat("0a", 32):        "#",
	} {
		if err := os.WriteFile(name, []byte("ann:"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		want := ":1: a hash that begins with " + kind + " is not known: expected a line of htpasswd -nbB NAME PASSWORD, or {PLAIN} before plain text"
		if _, err := accounts.ReadUsers(name); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestUnknownUser: the response time does not reveal whether a user exists.
func TestUnknownUser(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), 8)
	if err != nil {
		t.Fatal(err)
	}
	users := accounts.Users{"ann": string(hash), "bob": "plain"}
	timed := func(name string) time.Duration {
		begin := time.Now()
		for range 3 { // a Windows clock may advance in steps of 16 ms
			users.Check(name, []byte("wrong"))
		}
		return time.Since(begin)
	}
	known := timed("ann")
	for _, name := range []string{"bob", "nobody", ""} {
		unknown := timed(name)
		for range 50 { // a busy machine delays some checks, but not all
			known, unknown = min(known, timed("ann")), min(unknown, timed(name))
			if unknown >= known/3 {
				break
			}
		}
		if unknown < known/3 {
			t.Errorf("%q is refused in %s, ann in %s", name, unknown, known)
		}
	}
}
