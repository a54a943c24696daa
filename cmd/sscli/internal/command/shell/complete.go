package shell

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/directive"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/repl"
)

// complete is a [repl.Completer]. It returns the shell's own words and the candidates of cobra.
func (s *shell) complete(before []repl.Word, part repl.Word) []repl.Candidate {
	if len(before) > 0 && strings.EqualFold(before[0].Text, "sscli") {
		before = before[1:]
	}
	if len(before) > 0 && strings.HasPrefix(before[0].Text, ".") {
		return dotOperands(before, part.Text)
	}
	words, ok := directive.Command(before)
	if !ok || len(words) > 0 && isLeave(words[0].Text) {
		return nil
	}
	var found []repl.Candidate
	if len(words) == 0 {
		own := append(directive.Usages(), directive.Usage{Name: "exit", Help: "leave the shell"}, directive.Usage{Name: "quit", Help: "leave the shell"})
		if len(before) == 0 {
			own = append(own, dots()...)
		}
		for _, u := range own {
			if strings.HasPrefix(u.Name, part.Text) && (part.Text != "" || u.Name[0] != '.') {
				found = append(found, repl.Candidate{Text: u.Name, Help: u.Help})
			}
		}
	}
	found = append(found, s.completeCommand(words, part)...)
	slices.SortStableFunc(found, func(a, b repl.Candidate) int { return strings.Compare(a.Text, b.Text) })
	return slices.CompactFunc(found, func(a, b repl.Candidate) bool { return a.Text == b.Text })
}

func dotOperands(words []repl.Word, part string) (found []repl.Candidate) {
	values := map[string][]string{".output": format.Forms(), ".trace": {"on", "off"}}[strings.ToLower(words[0].Text)]
	for _, v := range values {
		if len(words) == 1 && strings.HasPrefix(v, part) {
			found = append(found, repl.Candidate{Text: v, Open: strings.HasSuffix(v, "=")})
		}
	}
	return found
}

// completeCommand gets candidates from cobra in the same way as the completion scripts of bash, zsh
// and fish.
func (s *shell) completeCommand(words []repl.Word, part repl.Word) []repl.Candidate {
	line := s.newLine()
	root := newLineRoot(line)
	complete.Register(line, root)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&bytes.Buffer{})
	args := usage.Protect(append(slices.Clone(words), part))
	if !part.Quoted {
		args[len(words)] = part.Text // part may be the beginning of a flag
	}
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, args...))
	if err := root.Execute(); err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	last := lines[len(lines)-1]
	number, err := strconv.Atoi(strings.TrimPrefix(last, ":"))
	directive := cobra.ShellCompDirective(number)
	if err != nil || directive&cobra.ShellCompDirectiveError != 0 {
		return nil
	}
	var found []repl.Candidate
	for _, line := range lines[:len(lines)-1] {
		text, help, _ := strings.Cut(line, "\t")
		flag := strings.HasPrefix(text, "-")
		text, ok := complete.DecodeCandidate(text)
		if ok && strings.HasPrefix(text, part.Text) {
			found = append(found, repl.Candidate{
				Text: text, Help: help, Flag: flag,
				Open: directive&cobra.ShellCompDirectiveNoSpace != 0 || strings.HasSuffix(text, "="),
			})
		}
	}
	if len(found) == 0 && directive&cobra.ShellCompDirectiveNoFileComp == 0 && !strings.HasPrefix(part.Text, "-") {
		return files(part.Text)
	}
	return found
}

// files returns the files whose names begin with part. A directory ends with a separator, and the word
// may continue after it.
func files(part string) (found []repl.Candidate) {
	dir, name := filepath.Split(part)
	entries, err := os.ReadDir(cmp.Or(dir, "."))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name) || name == "" && strings.HasPrefix(e.Name(), ".") {
			continue
		}
		c := repl.Candidate{Text: dir + e.Name()}
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.IsDir() {
			c.Text, c.Open = c.Text+string(filepath.Separator), true
		}
		found = append(found, c)
	}
	return found
}

// A keyMemory remembers keys for completion.
type keyMemory map[string]bool

// maxRemembered is the maximum number of keys in a keyMemory.
const maxRemembered = 10_000

// add adds a key, unless the key is empty or too long, or the memory is full.
func (m keyMemory) add(key string) {
	if key != "" && len(m) < maxRemembered && len(key) <= maxKept {
		m[key] = true
	}
}

// RememberKey implements [app.Shell].
func (c *connection) RememberKey(keys ...string) {
	for _, key := range keys {
		c.keys.add(key)
	}
}

func (m keyMemory) with(prefix string) []string {
	keys := slices.Sorted(maps.Keys(m))
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

// KeysWith implements [app.Shell]: it returns keys that begin with prefix, both remembered keys and, if
// the broker has SCAN, keys of the store. all is false if the store may have more.
func (c *connection) KeysWith(prefix string) (keys []string, all bool) {
	listed, all := c.scan(prefix)
	keys = append(c.keys.with(prefix), listed...)
	slices.Sort(keys)
	return slices.Compact(keys), all
}

// LocksWith implements [app.Shell]: it returns the remembered locks that begin with prefix. If there
// are none, it returns keys, because any key may be a lock.
func (c *connection) LocksWith(prefix string) (names []string, all bool) {
	if found := c.locks.with(prefix); len(found) > 0 {
		return found, true
	}
	return c.KeysWith(prefix)
}

// scan returns the keys of the store that begin with prefix (protocol.md 9). all is false if there may
// be more. Without a connection or SCAN, scan returns no keys, and all is true because nothing more can
// be listed. It returns no error, because completion prints none.
func (c *connection) scan(prefix string) (keys []string, all bool) {
	if c.noScan || !c.up() {
		return nil, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	keys, all, err := complete.Scan(ctx, c.session, prefix)
	if fault.IsA[*wire.StoreError](err) {
		c.noScan = true
	}
	return keys, all || c.noScan
}
