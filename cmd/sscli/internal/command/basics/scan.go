package basics

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/repl"
)

type scanFlags struct {
	pattern string
	limit   int // -1 means no limit
	long    bool
	sort    config.Text // age, size, key, or empty for the order of the store
}

// Scan returns the verb `scan`.
func Scan(_ verb.Env) verb.Verb {
	f := scanFlags{pattern: "*", limit: -1}
	return verb.Verb{
		Use:     "scan [PATTERN]",
		Aliases: []string{"keys"},
		Short:   "List keys",
		Long: `List the keys that match a pattern; the default is *.

In a pattern, * matches any characters, ? matches one character, [0-9] or [abc] one of a
set, and [!0-9] one that is not in the set. [*] matches a star. A pattern matches whole
keys. An empty result is not an error.

The store may leave out keys that are not UTF-8 text, which get can still read, and keys
that this client may not read. It promises no order, may list a key twice, and may or may
not list a key that is written or deleted during the scan. SCAN is new: if the broker does
not know it, the exit code is 5.

Keys are printed page by page, as the store sends them. --timeout applies to connecting,
and then to each page. If a reply is lost, scan requests the page again, for up to
--retry-for or, without it, --timeout. The raw form is one line for each key, with C
escapes.

--long also reads the values, many at a time, and prints the size of each value, when it
was written, and its first bytes. Keys that no longer exist when they are read are left
out. The raw form is KEY, VERSION, SIZE and the first bytes, separated by tabs.

--sort prints the keys after it has read all of them: the newest first (age), the largest
first (size), or in byte order (key). Each key is then listed once, and --limit counts the
sorted keys.`,
		Example: "  sscli scan\n  sscli scan 'thermostat/*' --long\n  sscli scan --long --sort size --limit 10\n  sscli scan --limit 10 -o json",
		Flags: func(fs *pflag.FlagSet) {
			fs.IntVar(&f.limit, "limit", -1, "stop after `N` keys")
			fs.Lookup("limit").DefValue = "0" // so that help shows no default
			fs.BoolVarP(&f.long, "long", "l", false, "also print the size, the age and the first bytes of each value")
			fs.Var(&f.sort, "sort", "sort by `ORDER`: age, size or key")
		},
		Parse: func(operands []repl.Word, _ verb.Source) (verb.Request, error) {
			f := f // several lines of a batch may share the verb
			if len(operands) > 1 {
				return verb.Request{}, fault.Usagef("%d patterns: expected one, in quotes so that the shell does not expand it to file names", len(operands))
			}
			if len(operands) == 1 {
				f.pattern = operands[0].Text
			}
			if f.limit < -1 || f.limit == 0 {
				return verb.Request{}, fault.Usagef("--limit %d: must be at least 1", f.limit)
			}
			if _, known := sortOrder(f.sort); !known {
				return verb.Request{}, fault.Usagef("--sort %.32q: expected age, size or key", string(f.sort))
			}
			first := client.Scan(f.pattern, nil)
			return verb.Request{
				Commands: []client.Command{first},
				Run: func(ctx context.Context, a *app.App, s *client.Session) error {
					if f.long || f.sort != "" && f.sort != "key" {
						return f.values(ctx, a, s)
					}
					return fault.DescribeScan(first, f.names(ctx, a, s))
				},
			}, nil
		},
	}
}

// names prints the keys: each page as it arrives, or with --sort all keys at the end.
func (f scanFlags) names(ctx context.Context, a *app.App, s *client.Session) error {
	n := 0
	show := func(keys []string) error {
		if f.limit > 0 {
			keys = keys[:min(f.limit-n, len(keys))]
		}
		n += len(keys)
		for _, key := range keys {
			if err := a.Queue(format.Key{Key: key}); err != nil {
				return err
			}
		}
		return a.Flush()
	}
	var unsorted []string
	for page, err := range exchange.NewBulk(a, s).Pages(ctx, f.pattern) {
		if err != nil {
			return err
		}
		if f.sort != "" {
			unsorted = append(unsorted, page.Keys...)
		} else if err := show(page.Keys); err != nil || n == f.limit {
			return err
		}
	}
	slices.Sort(unsorted)
	if err := show(slices.Compact(unsorted)); err != nil {
		return err
	}
	if n == 0 {
		f.informNone(a)
	}
	return nil
}

// informNone tells the user that no key matches. If the pattern has no wildcard, it suggests appending
// a *. For an MQTT topic filter, it suggests the corresponding pattern.
func (f scanFlags) informNone(a *app.App) {
	text := "no key matches " + format.Brief(f.pattern)
	if !utf8.ValidString(f.pattern) {
		text += "; the store may match UTF-8 text only"
	}
	pattern := app.Pattern(f.pattern)
	if pattern != "" && pattern != f.pattern {
		text += "; the wildcard of patterns is *: " + suggest.Run(suggest.Operand([]string{"scan"}, pattern)...).String()
	} else if !strings.HasPrefix(f.pattern, "-") && !strings.ContainsAny(f.pattern, "*?['") && format.Word(f.pattern) == f.pattern { // needs no quotes
		text += "; keys that begin with it: scan '" + f.pattern + "*'"
	}
	a.Inform(text)
}
