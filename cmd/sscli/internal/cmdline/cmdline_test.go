package cmdline

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
)

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
		{[]string{"-"}, "batch"},
		{[]string{"--unknown", "get"}, ""},
		{[]string{"-u"}, ""},
		{[]string{"--help"}, ""},
		{[]string{"", "get"}, ""},
		{[]string{"-h", "get"}, ""},
		{[]string{"--url=mqtt://h", "--no-tls", "get"}, "get"},
		{[]string{"-qo", "json", "get"}, "get"},
	} {
		if got := readWords(flags, test.args).command(); got != test.want {
			t.Errorf("%q: %q, want %q", test.args, got, test.want)
		}
	}
}

func TestBatchForDash(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(flags)
	for _, test := range []struct{ args, want string }{
		{"-", "batch -"},
		{"- --keep-going", "batch - --keep-going"},
		{"-q -u mqtt://h - --inflight 8", "-q -u mqtt://h batch - --inflight 8"},
		{"__complete - --keep", "__complete batch - --keep"},
		{"set k -", "set k -"},
		{"-u -", "-u -"},
		{"-- -", "-- -"},
		{"--unknown -", "--unknown -"},
		{"", ""},
	} {
		if got := scanArgs(flags, strings.Fields(test.args)).args; !slices.Equal(got, strings.Fields(test.want)) {
			t.Errorf("%q: %q, want %q", test.args, got, test.want)
		}
	}
}
