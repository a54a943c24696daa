//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/sscli/sscli/scripts/harness"
)

func TestMain(m *testing.M) {
	switch {
	case helper(os.Args[1:]): // see bench.runWith
	case slices.Equal(os.Args[1:], []string{"use 32 MiB"}):
		runtime.KeepAlive(bytes.Repeat([]byte("v"), 32<<20))
	default:
		os.Exit(m.Run())
	}
}

// TestPeak: the peak of a command is not that of this process, which is larger, nor that of the process in between.
func TestPeak(t *testing.T) {
	b := bench{ctx: t.Context()}
	large := bytes.Repeat([]byte("v"), 200<<20)
	if u := b.run(harness.Must(os.Executable()), "use 32 MiB"); u.memory() < 32 || u.memory() > 150 {
		t.Errorf("a command of 32 MiB used %.0f MB", u.memory())
	}
	runtime.KeepAlive(large)
	if harness.Try(func() { b.run("true").memory() }) == nil {
		t.Error("a command that is smaller than the process that measures it has a peak")
	}
}

// TestSuspicious: the same memory at two sizes is pointed out.
func TestSuspicious(t *testing.T) {
	for _, test := range []struct {
		row          row
		large, small float64
		want         bool
	}{
		{row{what: "MB at the peak", sizes: true}, 169.2, 168.9, true},
		{row{what: "MB at the peak", sizes: true}, 86, 60, false},
		{row{what: "MB at the peak"}, 169, 169, false},
		{row{what: "ms of a GET", sizes: true}, 1, 1, false},
	} {
		if got := test.row.suspicious(test.large, test.small); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// TestRounds: contenders take turns, each round reverses the order, and the figures are returned by
// contender.
func TestRounds(t *testing.T) {
	var order []string
	next := func(name string, figures ...float64) contender {
		return contender{name, func() float64 {
			order = append(order, name)
			f := figures[0]
			figures = figures[1:]
			return f
		}}
	}
	got := rounds(context.Background(), 3, next("a", 30, 10, 20), next("b", 10, 5, 1))
	if want := []string{"a", "b", "b", "a", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if want := (figures{30, 10, 20}); !slices.Equal(got[0], want) {
		t.Errorf("figures %v, want %v", got[0], want)
	}
	if m := got[0].median(); m != 20 {
		t.Errorf("median %v, want 20", m)
	}
	// The ratios are 3, 2 and 20; the ratio of the medians would be 4.
	if r := got[0].over(got[1]); r != 3 {
		t.Errorf("median of the ratios %v, want 3", r)
	}
	if m := (figures{4, 1}).median(); m != 2.5 {
		t.Errorf("median of two %v, want 2.5", m)
	}
}

func TestRoundsEndsWithTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	ran := false
	err := harness.Try(func() {
		rounds(context.Background(), 2,
			contender{"a", func() float64 { return harness.Must(0.0, broken) }},
			contender{"b", func() float64 { ran = true; return 0 }})
	})
	if !errors.Is(err, broken) || ran {
		t.Errorf("%v, and the next contender ran: %v", err, ran)
	}
}

// TestGoals checks a goal in each direction, and directions without a goal.
func TestGoals(t *testing.T) {
	for _, test := range []struct {
		goal         goal
		below, above bool // whether the figures 1 and 3 meet it
		text         string
	}{
		{least(2), false, true, "≥ 2"},
		{most(2), true, false, "≤ 2"},
		{more, true, true, ""},
		{less, true, true, ""},
	} {
		if test.goal.met(1) != test.below || test.goal.met(3) != test.above || test.goal.String() != test.text {
			t.Errorf("%+v: 1 %v, 3 %v, %q", test.goal, test.goal.met(1), test.goal.met(3), test.goal)
		}
	}
	if !least(2).met(2) || !most(2).met(2) {
		t.Error("the bound does not meet the goal")
	}
}

// TestChoose: by default the groups that need no cluster run, and a named group always runs.
func TestChoose(t *testing.T) {
	if _, err := choose([]string{"no-such-group"}, false); err == nil {
		t.Error("an unknown group is no error")
	}
	for _, g := range groups {
		if len(g.tools) > 0 {
			continue // programs may be missing on this machine
		}
		chosen, err := choose([]string{g.name}, true)
		if err != nil || len(chosen) != 1 || chosen[0].name != g.name {
			t.Errorf("%s: %v, %v", g.name, chosen, err)
		}
	}
}
