package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// isCompletion tells whether a shell asks what could come next.
func isCompletion(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// setCompletions lets flags complete to what they may be. Only what help calls FILE, and
// what may stand behind a CMD, is a file.
func (a *app) setCompletions(root *cobra.Command) {
	words := config.Words()
	words["until"] = []string{"set", "delete", "value="}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		each := func(f *pflag.Flag) {
			value, _ := pflag.UnquoteUsage(f)
			if value == "" || strings.Contains(value, "FILE") {
				return
			}
			complete := completeWords(words[f.Name])
			if f.Name == "context" {
				complete = func(cmd *cobra.Command, _ []string, part string) ([]string, cobra.ShellCompDirective) {
					return a.contextNames(cmd, part)
				}
			}
			// An error says that the command has completed it already.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete)
		}
		_, operands, _ := strings.Cut(cmd.Use, " ")
		switch {
		case cmd.ValidArgsFunction != nil:
		case strings.HasPrefix(operands, "NAME") && cmd.Parent().Name() == "lock":
			cmd.ValidArgsFunction = a.completeKeys(1)
		case !strings.Contains(operands, "FILE") && !strings.Contains(operands, "CMD"):
			cmd.ValidArgsFunction = noOperands
		}
		cmd.PersistentFlags().VisitAll(each)
		cmd.LocalNonPersistentFlags().VisitAll(each)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

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

// Operands that are no files.
func noOperands(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completionKeys is how many keys are worth listing.
const completionKeys = 500

// scannedKeys lists the keys of the store that begin like that: if a broker is
// configured, it knows SCAN, and it answers in time. Else there are none, and nothing is
// said. Left out is what a shell would have to quote: it would not, and what
// others have stored would become a part of its command line.
func (a *app) scannedKeys(cmd *cobra.Command, part string) []string {
	if !isPlain(part) && part != "" {
		return nil
	}
	if err := a.configure(cmd.Flags()); err != nil {
		return nil
	}
	s := &a.settings
	if s.AskPass || s.Embedded {
		return nil
	}
	s.Quiet, s.Verbose, s.Trace, s.TraceFile = true, false, false, ""
	s.Timeout = completionTime
	o, undo, err := a.broker()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	// What was found before an error is worth showing, and there is nobody to tell.
	defer func() { _ = undo() }()
	session, err := client.Dial(ctx, o)
	if err != nil {
		return nil
	}
	defer func() { _ = session.Close() }()
	var found []string
	for page, err := range session.Scan(ctx, part+"*") {
		if err != nil {
			break
		}
		for _, key := range page.Keys {
			if strings.HasPrefix(key, part) && isPlain(key) {
				found = append(found, key)
			}
		}
		if len(found) >= completionKeys {
			break
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// isPlain tells whether a key means itself to every shell, to SCAN, and to a parser of
// flags.
func isPlain(key string) bool {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_./:@%+,-", c)
	}
	return key != "" && key[0] != '-' && !strings.ContainsFunc(key, func(c rune) bool { return !plain(c) })
}

// Keys are any bytes, but cobra's candidates are lines of text.
const keyCandidate = "\x00"

func encodeCandidate(key string) string {
	return keyCandidate + strconv.QuoteToASCII(key)
}

func decodeCandidate(text string) (string, bool) {
	quoted, ok := strings.CutPrefix(text, keyCandidate)
	if !ok {
		return text, true
	}
	key, err := strconv.Unquote(quoted)
	return key, err == nil
}

// completeKeys is for the operands that are keys: at most so many, 0 for any number.
func (a *app) completeKeys(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		// cobra adds a -- at the end; one before it begins a command.
		if n := cmd.ArgsLenAtDash(); n >= 0 && n < len(args) {
			return nil, cobra.ShellCompDirectiveDefault
		}
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var found []string
		if a.shell == nil {
			found = a.scannedKeys(cmd, part)
			return slices.DeleteFunc(found, func(key string) bool { return slices.Contains(args, key) }), cobra.ShellCompDirectiveNoFileComp
		}
		for _, key := range a.shell.KeysWith(unprotect(part)) {
			if !slices.ContainsFunc(args, func(arg string) bool { return unprotect(arg) == key }) {
				found = append(found, encodeCandidate(key))
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completionTime is how long a user who pressed Tab waits for the store.
const completionTime = 300 * time.Millisecond

func (a *app) contextNames(cmd *cobra.Command, toComplete string) ([]string, cobra.ShellCompDirective) {
	all, _, err := config.Load(cmd.Flags(), a.env)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, name := range all.Names() {
		if strings.HasPrefix(name, toComplete) {
			names = append(names, cobra.CompletionWithDesc(name, all.Named[name].Broker()))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
