package suggest_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/repl"
)

func TestHint(t *testing.T) {
	has := func(flags string) func(string) string {
		return func(flag string) string {
			if slices.Contains(strings.Fields(flags), flag) {
				return flag
			}
			return ""
		}
	}
	busy := suggest.Try("`sscli lock status NAME` shows the holder; use a longer `--wait`; `--cert-file with --key-file`, or none")
	for _, tt := range []struct {
		hint suggest.Hint
		want string
	}{
		{busy, "sscli lock status NAME shows the holder; use a longer --wait; --cert-file with --key-file, or none"},
		{busy.Fill(suggest.Name, "a b").Possible(has("key-file")), "sscli lock status 'a b' shows the holder"},
		{busy.Fill(suggest.Key, "a").Possible(has("wait")).Inside(), "lock status NAME shows the holder; use a longer --wait"},
		{suggest.Try("`--ttl DURATION in place of WORDS...`").Fill(suggest.Duration, "5s").Fill(suggest.Words, "EX", "5"), "--ttl 5s in place of EX 5"},
		{suggest.Try("`omit --try` to wait").Possible(has("wait")), ""},
		{suggest.Try("`omit --try` to wait").Possible(has("try")), "omit --try to wait"},
		{suggest.Try("`-u mqtt://HOST:PORT`, or `sscli context set`").Possible(has("")), "-u mqtt://HOST:PORT, or sscli context set"},
		{suggest.Try("as in `ws://HOST:PORT/mqtt`").Fill(suggest.WebSocket, "ws://[::1]:80"), "as in 'ws://[::1]:80/mqtt'"},
		{suggest.Try("`env -u SSCLI_LOCK_NAME sscli …`"), "env -u SSCLI_LOCK_NAME sscli …"},
		{suggest.Try("`sscli scan [PATTERN]`"), "sscli scan"},
		{suggest.Try("`sscli scan [PATTERN]`").Fill(suggest.Optional, "a*"), "sscli scan 'a*'"},
		{suggest.Try("`sscli scan PREFIX*`"), "sscli scan 'PREFIX*'"},
		{suggest.Try("`sscli scan PREFIX*`").Fill(suggest.Prefix, "a"), "sscli scan 'a*'"},
		{suggest.Try("`sscli del KEY...`").Fill(suggest.Keys, "a", "KEY NAME"), "sscli del a 'KEY NAME'"},
		{suggest.Try("`sscli del KEY...`").Fill(suggest.Keys, "a", "-x"), "sscli del KEY..."},
		{suggest.Try("`sscli lock status NAME`, if it protects `KEY`").Fill(suggest.Name, "DEPLOY_KEY; TOKEN").Fill(suggest.Key, "state"), "sscli lock status 'DEPLOY_KEY; TOKEN', if it protects state"},
		{suggest.Run("sscli", "lock", "run", "--help").Inside(), "help lock run"},
		{suggest.Run("sscli", "--help").Inside(), "help"},
		{suggest.Try("`sscli serve`; `sscli get KEY`").Fill(suggest.Key, "it's").Inside(), `sscli serve; get "it's"`},
		{suggest.Run("sscli", "get", "a\nb").Inside(), `get "a\nb"`},
		{suggest.Say("a `KEY`; b").Fill(suggest.Key, "x"), "a `KEY`; b"},
		{nil, ""},
	} {
		if got := tt.hint.String(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// FuzzHint checks that both sscli's shell and sh read a command in a hint as the words that filled the hint.
func FuzzHint(f *testing.F) {
	for _, value := range []string{"a", "x; --foo y", "it's", "DEPLOY_KEY", "$(id)", "a\nb", "\xff", "`", "…", "=x", "~", "é", "#", `\`, "*", "!", "\u202e"} {
		f.Add(value)
	}
	bash, _ := exec.LookPath("bash")
	f.Fuzz(func(t *testing.T, value string) {
		hint := suggest.Try("first `sscli lock run NAME -- sscli set KEY VALUE`; then").Fill(suggest.Name, value).Fill(suggest.Key, "state")
		want := []string{"lock", "run", "NAME", "--", "sscli", "set", "state", "VALUE"}
		if value != "" && value[0] != '-' && len(value) <= 1000 {
			want[2] = value
		}
		inside := hint.Inside().String()
		words, err := repl.Split(strings.TrimSuffix(strings.TrimPrefix(inside, "first "), "; then"))
		if err != nil || !slices.Equal(repl.Texts(words), want) {
			t.Errorf("%q: the shell reads %q, %v: %s", value, repl.Texts(words), err, inside)
		}
		if bash == "" || strings.Contains(value, "\x00") {
			return
		}
		typed := strings.TrimSuffix(strings.TrimPrefix(hint.String(), "first sscli "), "; then")
		got, err := exec.Command(bash, "-c", `printf '%s\0' `+typed).Output()
		if err != nil || string(got) != strings.Join(want, "\x00")+"\x00" {
			t.Errorf("%q: bash reads %q, %v: %s", value, got, err, typed)
		}
	})
}
