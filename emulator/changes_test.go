package emulator_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

// TestChanges: a server keeps the last 1024 changes, with values of all sizes.
func TestChanges(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	if changes := s.Changes(); len(changes) != 0 {
		t.Errorf("nothing changed, got %v", changes)
	}
	value := func(i int) string { return strings.Repeat("v", i%50*100) }
	var versions []wire.Version
	for i := range 3000 {
		if i%500 == 1 {
			if n := len(s.Changes()); n != min(i, 1024) {
				t.Errorf("%d of %d changes are remembered", n, i)
			}
		}
		v, err := s.Set(strconv.Itoa(i), value(i))
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, v)
	}
	changes := s.Changes()
	if len(changes) != 1024 {
		t.Fatalf("%d changes are remembered", len(changes))
	}
	for i, c := range changes {
		n := 3000 - 1024 + i
		if c.Key != strconv.Itoa(n) || string(c.Value) != value(n) || !c.Version.Equal(versions[n]) || c.Cause != emulator.CauseSet || c.Time.IsZero() {
			t.Errorf("change %d is %+v", n, c)
		}
	}
}

// TestChangesAreCopies: a caller that modifies the values of Changes does not modify the server's.
func TestChangesAreCopies(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	if _, err := s.Set("k", "value"); err != nil {
		t.Fatal(err)
	}
	s.Changes()[0].Value[0] = 'X'
	if got := string(s.Changes()[0].Value); got != "value" {
		t.Errorf("the server's history has the value %q", got)
	}
}
