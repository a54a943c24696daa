package config

import (
	"net/url"
	"slices"
	"testing"
	"time"
)

// TestTable checks that the rows of the settings table are consistent.
func TestTable(t *testing.T) {
	flags, shorts, variables := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	unique := func(seen map[string]bool, what, name string) {
		if name != "" && seen[name] {
			t.Errorf("%s %q stands in two rows", what, name)
		}
		seen[name] = true
	}
	var s Settings
	fields := make(map[any]string)
	for _, row := range settings() {
		unique(flags, "flag", row.flag)
		unique(shorts, "shorthand", row.short)
		unique(variables, "variable", row.env)
		unique(variables, "variable", row.aio)
		if row.child == pass && row.env == "" {
			t.Errorf("--%s is passed on in no variable", row.flag)
		}
		if row.into == nil {
			if row.group == groupAlone {
				t.Errorf("--%s goes nowhere", row.flag)
			}
			continue
		}
		field := row.into(&s)
		if other, taken := fields[field]; taken {
			t.Errorf("--%s goes where --%s goes", row.flag, other)
		}
		fields[field] = row.flag
		switch field.(type) {
		case *string:
			if row.isSwitch() {
				t.Errorf("--%s is a switch and goes into a string", row.flag)
			}
		case *bool, *Level:
			if !row.isSwitch() {
				t.Errorf("--%s has a value and goes into a bool", row.flag)
			}
		case *time.Duration:
		case **url.URL, **Via:
			if row.group == groupAlone {
				t.Errorf("--%s: no setting by itself is a %T", row.flag, field)
			}
		default:
			t.Errorf("--%s goes into a %T", row.flag, field)
		}
	}
	for _, row := range settings() {
		for _, other := range row.replaces {
			if !flags[other] {
				t.Errorf("--%s replaces --%s, which there is not", row.flag, other)
			}
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for address, want := range map[string]bool{"localhost:1883": true, "127.0.0.1:1": true, "[::1]:1": true, "10.0.0.1:1883": false, "broker:1883": false, ":1883": false} {
		if got, err := IsLoopback(address); got != want || err != nil {
			t.Errorf("%s: %v, %v", address, got, err)
		}
	}
	if _, err := IsLoopback("x"); err == nil {
		t.Error("x is taken for HOST:PORT")
	}
}

// TestExportURL: the lines unset each variable that contradicts the URL, but none that is not set.
func TestExportURL(t *testing.T) {
	const url = "mqtt://127.0.0.1:1883"
	var want []string
	for _, name := range BesideURL() {
		want = append(want, Export(name, ""))
	}
	want = append(want, Export("SSCLI_URL", url))
	for set, want := range map[string][]string{"10.0.0.1": want, "": want[len(want)-1:]} {
		if got := ExportURL(func(string) (string, bool) { return set, true }, url); !slices.Equal(got, want) {
			t.Errorf("each variable is %q: %q, want %q", set, got, want)
		}
	}
}
