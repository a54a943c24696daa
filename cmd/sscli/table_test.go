package main

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/cmdline"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// TestOneCommand checks that a command that is built alone is the same as in the whole table.
func TestOneCommand(t *testing.T) {
	t.Parallel()
	names := func(root *cobra.Command) (names []string) {
		for _, c := range root.Commands() {
			if c.Name() != "help" {
				names = append(names, c.Name())
			}
		}
		return names
	}
	whole := cmdline.NewRoot(newApp())
	alone := 0
	for _, want := range whole.Commands() {
		root := cmdline.NewRootFor(newApp(), []string{want.Name()})
		if !slices.Equal(names(root), []string{want.Name()}) {
			continue // a topic, or a command that cobra adds
		}
		alone++
		got, _, err := root.Find([]string{want.Name()})
		if err != nil || got.UsageString() != want.UsageString() || got.Long != want.Long || got.Hidden != want.Hidden {
			t.Errorf("%s: %v\n%s\nwant\n%s", want.Name(), err, got.UsageString(), want.UsageString())
		}
	}
	if want := len(table()); alone != want {
		t.Errorf("%d commands can be made alone, want %d", alone, want)
	}
	for _, first := range []string{"", "GET", "--trace", "rm", "ge", "help", "__complete"} {
		if got := names(cmdline.NewRootFor(newApp(), []string{first, "k"})); !slices.Equal(got, names(whole)) {
			t.Errorf("%q: %q", first, got)
		}
	}
}

// TestFileFlags: completion offers files for the flags whose value help calls FILE, and for no others.
func TestFileFlags(t *testing.T) {
	t.Parallel()
	found := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if value, _ := pflag.UnquoteUsage(f); (value == config.FileValue) != (f.Value.Type() == config.FileValue) {
				t.Errorf("%s --%s: help calls the value %s, and its type is %s", cmd.CommandPath(), f.Name, value, f.Value.Type())
			} else if value == config.FileValue {
				found++
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(cmdline.NewRoot(newApp()))
	if found < 30 {
		t.Errorf("%d flags of all commands take a file", found)
	}
}
