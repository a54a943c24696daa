package app

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// FuzzProtect: a protected word comes back as it was, and one that is an operand is
// none of a flag parser's business.
func FuzzProtect(f *testing.F) {
	for _, word := range []string{"", "-", "--", "-5", "-5e3", "--nx", "-x", "\x00", "\x00-5", "a", "-é"} {
		f.Add(word, false)
		f.Add(word, true)
	}
	f.Fuzz(func(t *testing.T, word string, quoted bool) {
		safe := Protect(word, quoted)
		if !quoted && !strings.HasPrefix(word, guard) && safe == word && strings.HasPrefix(word, "-") && len(word) > 1 && word[1] >= '0' && word[1] <= '9' {
			t.Errorf("protect(%q) did nothing", word)
		}
		if got := Unprotect(safe); safe != word && got != word || safe == word && got != word {
			t.Errorf("unprotect(protect(%q)) = %q", word, got)
		}
		if !quoted && safe == word {
			return
		}
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		if err := fs.Parse([]string{safe}); err != nil || fs.NArg() != 1 || Unprotect(fs.Arg(0)) != word {
			t.Errorf("%q became %q, %v", word, fs.Args(), err)
		}
	})
}

func TestFlagError(t *testing.T) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	fs.IntP("count", "n", 0, "")
	fs.Bool("nx", false, "")
	fs.Float64("rate", 0, "")
	for args, want := range map[string]string{
		"--count=x":          `--count "x": want a whole number of at least 0`,
		"-n " + guard + "-5": `--count "-5": want a whole number of at least 0`,
		"--rate=x":           `--rate "x": want a number of at least 0`,
		"--nx=perhaps":       `--nx "perhaps": want true or false`,
		"--nonsense":         "unknown flag: --nonsense",
	} {
		if err := fs.Parse(strings.Fields(args)); err == nil || FlagError(err) != want {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}
