package usage

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/repl"
)

// FuzzProtect: unprotecting a protected word gives the word, and a flag parser takes a protected operand for an
// operand.
func FuzzProtect(f *testing.F) {
	for _, word := range []string{"", "-", "--", "-5", "-5e3", "--nx", "-x", "\x00", "\x00-5", "a", "-é"} {
		f.Add(word, false)
		f.Add(word, true)
	}
	f.Fuzz(func(t *testing.T, text string, quoted bool) {
		word := repl.Word{Text: text, Quoted: quoted}
		args := Protect([]repl.Word{word})
		if len(text) > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9' && args[0] == text {
			t.Errorf("Protect(%q) did nothing", text)
		}
		if got := Unprotect(args); got[0] != text {
			t.Errorf("Unprotect(Protect(%q)) = %q", text, got)
		}
		if got := Words(args); got[0].Text != text || IsFlag(got[0]) != IsFlag(word) {
			t.Errorf("Words(Protect(%+v)) = %+v", word, got)
		}
		if IsFlag(word) {
			return
		}
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		if err := fs.Parse(args); err != nil || fs.NArg() != 1 || Unprotect(fs.Args())[0] != text {
			t.Errorf("%+v became %q, %v", word, fs.Args(), err)
		}
	})
}

func TestFlagError(t *testing.T) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	fs.IntP("count", "n", 0, "")
	fs.Bool("nx", false, "")
	fs.Float64("rate", 0, "")
	for args, want := range map[string]string{
		"--count=x":         `--count "x": expected a whole number of at least 0`,
		"-n " + mark + "-5": `--count "-5": expected a whole number of at least 0`,
		"--rate=x":          `--rate "x": must be a number of at least 0`,
		"--nx=perhaps":      `--nx "perhaps": must be true or false`,
		"--nonsense":        "unknown flag: --nonsense",
	} {
		if err := fs.Parse(strings.Fields(args)); err == nil || FlagError("", err).Error() != want {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}

// TestUnprotectFlags: the values of flags may look like flags.
func TestUnprotectFlags(t *testing.T) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	one := fs.String("one", "", "")
	many := fs.StringArray("many", nil, "")
	if err := fs.Parse(Protect([]repl.Word{{Text: "--one"}, {Text: "-2m"}, {Text: "--many"}, {Text: "-1"}, {Text: "--many"}, {Text: "b"}})); err != nil {
		t.Fatal(err)
	}
	if err := UnprotectFlags(fs); err != nil || *one != "-2m" || strings.Join(*many, " ") != "-1 b" {
		t.Errorf("%q %q, %v", *one, *many, err)
	}
}
