// Package complete finds the candidates for Tab completion, in the user's shell and in sscli's.
//
// [Register] sets the completions of a whole tree of commands. Call it before cobra completes a
// line. Commands whose operands are keys, locks, contexts or files set ValidArgsFunction to [Keys],
// [Locks], [ContextNames] or [Files].
//
// Keys come from the store, if a broker is configured, and if the store supports SCAN and
// replies within [Limit]. In sscli's shell, the keys seen so far are candidates too. Completion prints
// no errors. A key that the user's shell would have to quote is offered only if the completion
// script of that shell quotes it; otherwise the shell might run part of the key as a command.
package complete

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
)

// Register sets the completions of every command and flag below root. File names are completed only for flags whose
// value is a FILE.
func Register(a *app.App, root *cobra.Command) {
	words := config.Words()
	words["show"] = format.Shows()
	words["until"] = []string{"set", "delete", "value="}
	words["log-format"] = []string{"text", "json"}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		each := func(f *pflag.Flag) {
			var value string
			value, f.Usage = pflag.UnquoteUsage(f) // cobra shows the usage as the flag's description
			if value == "" || f.Value.Type() == config.FileValue {
				return
			}
			complete := completeWords(words[f.Name])
			switch f.Name {
			case "context":
				complete = ContextNames(a, 0)
			case "output":
				complete = func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
					return completeWords(append(strings.Fields(cmd.Annotations[app.Forms]), format.Forms()...))(cmd, args, part)
				}
			}
			// Registering fails if the command has registered its own completion, which then applies.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete)
		}
		if cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
				return nil, commandAfter(cmd) | cobra.ShellCompDirectiveNoFileComp
			}
		}
		cmd.PersistentFlags().VisitAll(each)
		cmd.LocalNonPersistentFlags().VisitAll(each)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// completeWords returns a function that offers the words with the typed prefix.
func completeWords(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, part string) ([]string, cobra.ShellCompDirective) {
		fit := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, part) })
		directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		if slices.ContainsFunc(fit, func(w string) bool { return strings.HasSuffix(w, "=") }) && len(fit) == 1 {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return fit, directive
	}
}

// QuotesVariable is the environment variable that a completion script sets if it quotes candidates.
// The script for PowerShell does not quote, and neither do scripts from old versions of sscli. If the
// value is [Escapes], the script also decodes candidates that are keys as printf %b does.
const QuotesVariable = "SSCLI_COMPLETION_QUOTES"

// Escapes is the value of [QuotesVariable] with which keys are escaped.
const Escapes = "escapes"

// scannedKeys returns the store's keys that begin with part, and all as for [Scan]. There are no
// keys with --askpass or --embedded, without a configured broker, or if the broker has no SCAN or
// does not reply in time. If the completion script does not quote candidates, scannedKeys leaves
// out keys that need quotes, because text that others have stored would become part of the command
// line. It leaves out keys with a leading minus unless dashed is true.
func scannedKeys(a *app.App, cmd *cobra.Command, part string, dashed bool) (found []string, all bool) {
	quotes := isPlain
	switch set, _ := a.Env(QuotesVariable); set {
	case "":
	case Escapes:
		quotes = func(key string) bool { return !strings.Contains(key, "\x00") }
	default:
		quotes = isText
	}
	fits := func(key string) bool { return (dashed || !strings.HasPrefix(key, "-")) && quotes(key) }
	if !fits(part + "x") { // no key that fits begins with part
		return nil, true
	}
	if err := a.Configure(cmd.Flags()); err != nil {
		return nil, true
	}
	s := &a.Settings
	if s.AskPass || s.Embedded {
		return nil, true
	}
	s.Quiet, s.Verbose, s.Trace, s.TraceFile = true, 0, false, ""
	s.Timeout = Limit(a)
	ctx, cancel := context.WithTimeout(cmd.Context(), Limit(a))
	defer cancel()
	// Errors are not shown, because the shell could only print them into the user's line.
	_ = a.WithSession(ctx, func(s *client.Session, _ client.Options) (err error) {
		found, all, err = Scan(ctx, s, part)
		return err
	})
	return slices.DeleteFunc(found, func(key string) bool { return !fits(key) }), all
}

// maxScanned is the number of keys after which [Scan] stops.
const maxScanned = 20_000

// Scan returns the store's keys that begin with prefix, sorted. all reports whether it read every page.
// If ctx ends first, or if there are too many keys, found holds the keys that were read so far.
func Scan(ctx context.Context, s *client.Session, prefix string) (found []string, all bool, err error) {
	all = true
	for page, scanErr := range s.Scan(ctx, literal(prefix)+"*") {
		if scanErr != nil || len(found) > maxScanned {
			all, err = false, scanErr
			break
		}
		for _, key := range page.Keys {
			if strings.HasPrefix(key, prefix) {
				found = append(found, key)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), all, err
}

// maxListed is the maximum number of keys that completion offers without cutting them.
const maxListed = 500

// offer returns the candidates that complete part. open is true if the word may continue after a
// candidate. If there are more than maxListed keys, or if all is false, offer cuts each key after
// the next slash.
//
// If all is false, offer returns no candidate unless all keys are cut to the same text. Otherwise the
// shell would insert the text that the candidates share, although keys that were not read might not
// share it.
func offer(keys []string, part string, all bool) (candidates []string, open bool) {
	if all && len(keys) <= maxListed {
		return keys, false
	}
	for _, key := range keys {
		if name, _, deeper := strings.Cut(key[len(part):], "/"); deeper {
			key, open = part+name+"/", true
		}
		candidates = append(candidates, key)
	}
	candidates = slices.Compact(candidates)
	if !all && (len(candidates) > 1 || !open) {
		return nil, false
	}
	return candidates, open
}

// isPlain reports whether a key has no special meaning to shells and SCAN.
func isPlain(key string) bool {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_./:@%+,-", c)
	}
	return key != "" && !strings.ContainsFunc(key, func(c rune) bool { return !plain(c) })
}

// isText reports whether a key can be a candidate if the completion script quotes candidates: one line
// of printable text without a backslash or spaces at the ends, which cobra would remove.
func isText(key string) bool {
	return isPlain(key) || key != "" && utf8.ValidString(key) && strings.TrimSpace(key) == key &&
		!strings.ContainsFunc(key, func(c rune) bool { return !unicode.IsPrint(c) || c == '\\' })
}

// escape returns a key as one line for printf %b: of printable text, and without spaces at the ends, which
// cobra would remove.
func escape(key string) string {
	var b strings.Builder
	for i, c := range key {
		_, size := utf8.DecodeRuneInString(key[i:])
		switch edge := i == 0 || i+size == len(key); {
		case c == '\\' || c == ' ' && edge || !unicode.IsPrint(c) || c == utf8.RuneError && size == 1:
			for _, octet := range []byte(key[i : i+size]) {
				fmt.Fprintf(&b, `\x%02x`, octet)
			}
		default:
			b.WriteString(key[i : i+size])
		}
	}
	return b.String()
}

// literal returns a SCAN pattern that matches a text. It replaces each special character of patterns
// with ?, so the pattern may match other texts too.
func literal(text string) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune(`*?[]\`, c) {
			return '?'
		}
		return c
	}, text)
}

// keyCandidate is the prefix of a candidate that is a quoted key. Keys are quoted because they may
// hold any bytes, but cobra's candidates are lines of text.
const keyCandidate = "\x00"

// DecodeCandidate returns the key in a candidate, or the candidate itself if it is not a key. It
// returns false for a damaged candidate.
func DecodeCandidate(text string) (string, bool) {
	quoted, ok := strings.CutPrefix(text, keyCandidate)
	if !ok {
		return text, true
	}
	key, err := strconv.Unquote(quoted)
	return key, err == nil
}

// Command is a directive beside cobra's own, for our completion scripts: if -- precedes the word, the
// words after -- are the command line of another program, and the shell completes them as such.
const Command cobra.ShellCompDirective = 64

// commandAfter returns [Command] if the words after -- are a command line. Whether there is a -- only the
// shell knows: cobra adds one to the words.
func commandAfter(cmd *cobra.Command) cobra.ShellCompDirective {
	if _, ok := cmd.Annotations[app.RunsCommand]; ok {
		return Command
	}
	return 0
}

// Keys completes operands that are keys. most is the number of operands to complete; 0 = all.
func Keys(a *app.App, most int) cobra.CompletionFunc { return names(a, most, app.Shell.KeysWith) }

// Locks completes operands that are names of locks; most is as for [Keys].
func Locks(a *app.App, most int) cobra.CompletionFunc { return names(a, most, app.Shell.LocksWith) }

// Files completes operands that are files.
func Files(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// names is like [Keys], but in sscli's shell the candidates are the names that known returns. In the
// user's shell the candidates are always keys, because the store does not know which keys are locks.
func names(a *app.App, most int, known func(s app.Shell, prefix string) (names []string, all bool)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		// Cobra appends -- to args, and completes flags if part begins with a minus and follows no other
		// --. After that, a key may begin with a minus, unless the words are another program's command
		// line.
		n := cmd.ArgsLenAtDash()
		dashed := n >= 0 && n < len(args) || strings.HasPrefix(part, "-")
		directive := commandAfter(cmd)
		if dashed && directive == Command {
			return nil, directive
		}
		directive |= cobra.ShellCompDirectiveNoFileComp
		if most > 0 && len(args) >= most {
			return nil, directive
		}
		var found []string
		var all bool
		if a.Shell == nil {
			found, all = scannedKeys(a, cmd, part, dashed)
		} else {
			words := usage.Unprotect(append(slices.Clone(args), part))
			args, part = words[:len(args)], words[len(args)]
			found, all = known(a.Shell, part)
		}
		found = slices.DeleteFunc(found, func(key string) bool { return slices.Contains(args, key) })
		found, open := offer(found, part, all)
		set, _ := a.Env(QuotesVariable)
		for i := range found {
			switch {
			case a.Shell != nil:
				found[i] = keyCandidate + strconv.QuoteToASCII(found[i])
			case set == Escapes:
				found[i] = escape(found[i])
			}
		}
		if open {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return found, directive
	}
}

// Limit returns how long completion waits for the store.
func Limit(a *app.App) time.Duration { return cmp.Or(a.CompletionLimit, 300*time.Millisecond) }

// ContextNames completes operands that are names of contexts. most is the number of operands to
// complete; 0 = all.
func ContextNames(a *app.App, most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		all, _, err := config.Load(cmd.Flags(), a.Env)
		if err != nil || most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, name := range all.Names() {
			if strings.HasPrefix(name, part) {
				names = append(names, cobra.CompletionWithDesc(name, all.Named[name].Broker()))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
