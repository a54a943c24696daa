package cmdline

import (
	"os"
	"strings"
	"testing"
)

func TestSetup(t *testing.T) {
	for _, c := range []struct{ args, env, want, via string }{
		{"get a", "", "get a", "kubectl"},
		{"-n iot get a -n 3", "", "get a -n 3", "kubectl:iot/"},
		{"--context=lab get a", "", "get a", "kubectl:lab//"},
		{"--namespace iot --context lab get a", "", "get a", "kubectl:lab/iot/"},
		{"-u mqtt://h get a", "", "-u mqtt://h get a", "kubectl"},
		{"get a", "SSCLI_URL=mqtt://h", "get a", ""},
		{"-n iot get a", "SSCLI_URL=mqtt://h", "get a", "kubectl:iot/"},
		{"get a", "SSCLI_VIA=kubectl:x", "get a", "kubectl:x"},
		{"-n iot get a", "SSCLI_VIA=kubectl:x", "get a", "kubectl:iot/"},
		{"", "", "", "kubectl"},
	} {
		key, value, _ := strings.Cut(c.env, "=")
		rest, env, err := SetupPlugin(strings.Fields(c.args), func(name string) (string, bool) {
			if name != key {
				return "", false
			}
			return value, true
		})
		if err != nil {
			t.Fatal(err)
		}
		via, _ := env("SSCLI_VIA")
		if url, _ := env("SSCLI_URL"); via != "" && url != "" {
			t.Errorf("%+v: both a way and %s", c, url)
		}
		if got := strings.Join(rest, " "); got != c.want || via != c.via {
			t.Errorf("%+v: %s by %s", c, got, via)
		}
	}
	for _, args := range []string{"-n", "--context=", "--kubeconfig"} {
		if _, _, err := SetupPlugin([]string{args}, os.LookupEnv); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
	t.Setenv("KUBECONFIG", "before")
	if _, _, err := SetupPlugin([]string{"--kubeconfig", "file", "get"}, os.LookupEnv); err != nil || os.Getenv("KUBECONFIG") != "file" {
		t.Errorf("KUBECONFIG=%s, %v", os.Getenv("KUBECONFIG"), err)
	}
}
