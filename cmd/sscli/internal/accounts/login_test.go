package accounts_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/accounts"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
)

// TestRuleForUnknownUser: a rule for a user who is not in the file is an error, unless tokens name users.
func TestRuleForUnknownUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	users, tokens := filepath.Join(dir, "users"), filepath.Join(dir, "tokens")
	for _, name := range []string{users, tokens} {
		if err := os.WriteFile(name, []byte("ann:secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		login  accounts.Login
		tokens bool
		want   string
	}{
		{login: accounts.Login{Allow: []string{"ann:Read:*", "*:Read:{principal.username}"}}},
		{login: accounts.Login{Allow: []string{"ann:Read:*", "eve:Read:*"}}, want: `--allow "eve:Read:*": user "eve" can never log in: not in the list of users`},
		{login: accounts.Login{Allow: []string{"eve:Read:*"}}, tokens: true},
		{login: accounts.Login{Allow: []string{"eve:Read:*"}, Tokens: config.File(tokens)}},
		{login: accounts.Login{}},
	} {
		tt.login.Users = config.File(users)
		err := tt.login.Apply(new(emulator.Options), tt.tokens)
		usage, ok := errors.AsType[*fault.UsageError](err)
		if ok != (tt.want != "") || ok && !strings.Contains(usage.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.login, err, tt.want)
		}
	}
}
