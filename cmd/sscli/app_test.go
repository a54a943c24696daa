package main

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

// TestOneCommand holds that a command made by itself is the one of the whole table.
func TestOneCommand(t *testing.T) {
	names := func(root *cobra.Command) (names []string) {
		for _, c := range root.Commands() {
			if c.Name() != "help" {
				names = append(names, c.Name())
			}
		}
		return names
	}
	whole := newRoot(newApp())
	alone := 0
	for _, want := range whole.Commands() {
		root := newRootFor(newApp(), []string{want.Name()})
		if !slices.Equal(names(root), []string{want.Name()}) {
			continue // a topic or a command of cobra's
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
		if got := names(newRootFor(newApp(), []string{first, "k"})); !slices.Equal(got, names(whole)) {
			t.Errorf("%q: %q", first, got)
		}
	}
}

func TestFirstWord(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(flags)
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"get", "k"}, "get"},
		{[]string{"-u", "mqtt://h", "get", "k"}, "get"},
		{[]string{"-umqtt://h", "--trace", "-o=json", "--host", "set", "get", "k"}, "get"},
		{[]string{"-qv", "get"}, "get"},
		{[]string{"--", "get"}, "get"},
		{[]string{"-"}, "-"},
		{[]string{"--unknown", "get"}, ""},
		{[]string{"-u"}, ""},
		{[]string{"--help"}, ""},
		{[]string{"", "get"}, ""},
		{[]string{"-h", "get"}, ""},
		{[]string{"--url=mqtt://h", "--no-tls", "get"}, "get"},
		{[]string{"-qo", "json", "get"}, "get"},
	} {
		if got := firstWord(flags, test.args); got != test.want {
			t.Errorf("%q: %q, want %q", test.args, got, test.want)
		}
	}
}
