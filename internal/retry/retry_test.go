package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/internal/retry"
)

// TestDo: how often a call is repeated, after which error it is not, and how long it takes.
func TestDo(t *testing.T) {
	away, permanent := errors.New("away"), errors.New("permanent")
	for name, tt := range map[string]struct {
		o           retry.Options
		errs        []error       // of the calls; the last one stands for all that follow
		cancel      time.Duration // when the context ends; 0 = never
		calls       int           // exactly, or at least if many is true
		many        bool
		want        error
		least, most time.Duration
	}{
		"success":                     {retry.Options{For: time.Hour}, []error{nil}, 0, 1, false, nil, 0, 0},
		"one attempt":                 {retry.Options{}, []error{away}, 0, 1, false, away, 0, 0},
		"permanent":                   {retry.Options{For: time.Hour}, []error{permanent}, 0, 1, false, permanent, 0, 0},
		"the second follows":          {retry.Options{For: time.Hour}, []error{away, nil}, 0, 2, false, nil, 0, 0},
		"then a pause":                {retry.Options{For: time.Hour}, []error{away, away, nil}, 0, 3, false, nil, 50 * time.Millisecond, 100 * time.Millisecond},
		"permanent later":             {retry.Options{For: time.Hour}, []error{away, permanent}, 0, 2, false, permanent, 0, 0},
		"the last begins at the end":  {retry.Options{For: time.Minute}, []error{away}, 0, 9, true, away, time.Minute, time.Minute},
		"no pause above the longest":  {retry.Options{For: time.Minute, Longest: time.Second}, []error{away}, 0, 60, true, away, time.Minute, time.Minute},
		"forever":                     {retry.Options{For: retry.Forever}, []error{away}, time.Hour, 360, true, away, time.Hour, time.Hour},
		"the context ends in a pause": {retry.Options{For: time.Hour}, []error{away}, 10 * time.Second, 5, true, away, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.cancel > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.cancel)
					defer cancel()
				}
				calls, told := 0, 0
				tt.o.Again = func(err error) bool { return err != permanent }
				tt.o.Tell = func(err error) {
					if told++; err != away || told != calls {
						t.Errorf("told %v, the %d. time, after %d calls", err, told, calls)
					}
				}
				began := time.Now()
				err := retry.Do(ctx, tt.o, func() error {
					calls++
					return tt.errs[min(calls, len(tt.errs))-1]
				})
				took := time.Since(began)
				if err != tt.want || calls < tt.calls || !tt.many && calls > tt.calls || took < tt.least || took > tt.most || told < calls-1 {
					t.Errorf("%v after %d calls and %v; told %d times", err, calls, took, told)
				}
			})
		})
	}
}

// TestDoEnded: a call is not repeated once the context has ended.
func TestDoEnded(t *testing.T) {
	away, calls := errors.New("away"), 0
	ctx, cancel := context.WithCancel(t.Context())
	o := retry.Options{For: time.Hour, Again: func(error) bool { return true }, Tell: func(error) { t.Error("told of another attempt") }}
	err := retry.Do(ctx, o, func() error {
		calls++
		cancel()
		return away
	})
	if err != away || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// TestPause: no pause after success, then twice as long each time up to the longest, shortened by up to half.
func TestPause(t *testing.T) {
	for failures, most := range []time.Duration{0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000} {
		most *= time.Millisecond
		for range 100 {
			if got := retry.Pause(failures, 0); got < most/2 || got > most {
				t.Errorf("%v after %d failures, want at most %v", got, failures, most)
			}
		}
	}
	if got := retry.Pause(100, time.Minute); got < 30*time.Second || got > time.Minute {
		t.Errorf("%v after 100 failures, want at most a minute", got)
	}
}
