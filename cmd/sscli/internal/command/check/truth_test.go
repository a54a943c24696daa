package check_test

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/apptest"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/freeport"
)

// The states of checks, as metrics have them.
const (
	isOK = iota
	warns
	isCritical
	isUnknown
)

// A truth is what is so, with a check and the states that it may have: OK only where that is known.
type truth struct {
	url    string
	args   []string
	states []int
}

// TestTruth: whatever is so, and in whatever form it is said, no check is OK that is not known to be.
func TestTruth(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	start := func(t *testing.T, o emulator.Options) *emulator.Server {
		store := emulator.Start(t, o)
		apptest.Put(t, store, "k", "5")
		apptest.Put(t, store, "l", "ci:1")
		return store
	}
	fast := func(t *testing.T, store *emulator.Server) { // a client whose clock is ahead of the store's writes
		t.Helper()
		s, err := client.Dial(t.Context(), client.Options{Address: store.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Set(t.Context(), "k", []byte("5")); err != nil {
			t.Fatal(err)
		}
	}
	behind := emulator.Options{Skew: -50 * time.Second}
	for name, prepare := range map[string]func(*testing.T) truth{
		"all is well": func(t *testing.T) truth {
			return truth{start(t, emulator.Options{}).URL(), []string{"k", "--max-age", "1h", "--max", "5"}, []int{isOK}}
		},
		"broker dead": func(t *testing.T) truth {
			store := start(t, emulator.Options{})
			url := store.URL()
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			return truth{url, []string{"k"}, []int{isCritical}}
		},
		"broker frozen": func(t *testing.T) truth {
			store := start(t, emulator.Options{})
			store.Intercept(func(emulator.Request) emulator.Action { return emulator.Action{Drop: true, NoPuback: true} })
			return truth{store.URL(), []string{"k", "-t", "300ms"}, []int{isCritical}}
		},
		"broker refuses": func(t *testing.T) truth {
			return truth{start(t, emulator.Options{CheckLogin: emulator.Passwords(map[string]string{"ann": "x"})}).URL(), []string{"k"}, []int{isCritical}}
		},
		"store empty": func(t *testing.T) truth {
			return truth{emulator.Start(t).URL(), []string{"k"}, []int{isCritical}}
		},
		"no key of a pattern": func(t *testing.T) truth {
			return truth{emulator.Start(t).URL(), []string{"--match", "line*", "--max-age", "1h"}, []int{isUnknown}}
		},
		"this clock fast": func(t *testing.T) truth {
			return truth{start(t, behind).URL(), []string{"--skew", "1s"}, []int{isCritical}}
		},
		"this clock slow": func(t *testing.T) truth {
			return truth{start(t, emulator.Options{Skew: 50 * time.Second}).URL(), []string{"--skew", "1s"}, []int{isCritical}}
		},
		"this clock fast, and the store's follows it": func(t *testing.T) truth {
			store := start(t, behind)
			fast(t, store)
			return truth{store.URL(), []string{"--skew", "30s"}, []int{isUnknown}}
		},
		"a key of a fast client": func(t *testing.T) truth {
			store := start(t, behind)
			fast(t, store)
			return truth{store.URL(), []string{"k", "--max-age", "30s"}, []int{isUnknown}}
		},
		"a key behind a fast client": func(t *testing.T) truth {
			store := start(t, behind)
			fast(t, store)
			apptest.Put(t, store, "after", "1")
			return truth{store.URL(), []string{"after", "--max-age", "30s"}, []int{isUnknown}}
		},
		"each key behind a fast client": func(t *testing.T) truth {
			store := start(t, behind)
			fast(t, store)
			return truth{store.URL(), []string{"--match", "k*", "--max-age", "30s"}, []int{isUnknown}}
		},
		"a key whose version is ahead, without a write": func(t *testing.T) truth {
			return truth{start(t, emulator.Options{Skew: 50 * time.Second}).URL(), []string{"k", "--max-age", "30s", "--no-write"}, []int{isUnknown}}
		},
		"the skew, without a write": func(t *testing.T) truth {
			return truth{start(t, emulator.Options{}).URL(), []string{"--skew", "1h", "--no-write"}, []int{isUnknown}}
		},
		"state file damaged": func(t *testing.T) truth {
			file := filepath.Join(t.TempDir(), "state")
			if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
			return truth{start(t, emulator.Options{}).URL(), []string{"--lock", "l", "--held-max", "1h", "--state", file}, []int{isUnknown}}
		},
		"a CA that ends": func(t *testing.T) truth {
			ca := issue(t, nil, "ca", 3*day, true)
			store := start(t, emulator.Options{TLS: &tls.Config{Certificates: []tls.Certificate{issue(t, ca, "leaf", 100*day, false).TLS()}}})
			return truth{store.URL(), []string{"--cert-expires", "14d", "--ca-file", pemFile(t, ca.PEM())}, []int{isCritical}}
		},
		"a broker that is not verified": func(t *testing.T) truth {
			ca := issue(t, nil, "ca", 100*day, true)
			store := start(t, emulator.Options{TLS: &tls.Config{Certificates: []tls.Certificate{issue(t, ca, "leaf", 100*day, false).TLS()}}})
			return truth{store.URL(), []string{"--cert-expires", "14d", "--tls-insecure"}, []int{isUnknown}}
		},
		"value unreadable": func(t *testing.T) truth {
			var closed atomic.Bool
			store := start(t, emulator.Options{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return !closed.Load() || a.On != "k" })})
			closed.Store(true)
			return truth{store.URL(), []string{"k", "--max", "9"}, []int{isUnknown}}
		},
		"a token that cannot be read": func(t *testing.T) truth {
			return truth{start(t, emulator.Options{}).URL(), []string{"k", "--sat-file", filepath.Join(t.TempDir(), "none")}, []int{isUnknown}}
		},
		"one more in the last digit": func(t *testing.T) truth {
			store := start(t, emulator.Options{})
			apptest.Put(t, store, "big", "1795874478704000001")
			return truth{store.URL(), []string{"big", "--max", "1795874478704000000"}, []int{isCritical}}
		},
		"a field, one more in the last digit": func(t *testing.T) truth {
			store := start(t, emulator.Options{})
			apptest.Put(t, store, "big", `{"n": 0.30000000000000000001}`)
			return truth{store.URL(), []string{"big", "--json", "n", "--max", "0.3"}, []int{isCritical}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt := prepare(t)
			said := func(form string, state int, text string) {
				t.Helper()
				if !slices.Contains(tt.states, state) {
					t.Errorf("%s: %d, want %v: %s", form, state, tt.states, text)
				}
			}
			words := map[string]int{"pass": isOK, "warn": warns, "fail": isCritical, "skip": isUnknown}
			_, stdout, stderr := run(t, tt.url, append(slices.Clone(tt.args), "-o", "human")...)
			said("human", words[strings.ToLower(strings.Fields(stdout + " ?")[0])], stdout+stderr)
			code, stdout, stderr := run(t, tt.url, append(slices.Clone(tt.args), "-o", "json")...)
			status := regexp.MustCompile(`"status":"(\w+)"`).FindStringSubmatch(stdout)
			if status == nil {
				t.Fatalf("json: %d, %q, %q", code, stdout, stderr)
			}
			said("json", words[status[1]], stdout)
			if code == 0 != (status[1] == "pass") {
				t.Errorf("json: exit code %d: %s", code, stdout)
			}
			code, stdout, _ = run(t, tt.url, append(slices.Clone(tt.args), "-o", "nagios")...)
			said("nagios", code, stdout)
			_, stdout, stderr = run(t, tt.url, append(slices.Clone(tt.args), "-o", "prometheus")...)
			state := regexp.MustCompile(`(?m)^sscli_check_state\{.*\} (\d)$`).FindStringSubmatch(stdout)
			if state == nil {
				t.Fatalf("prometheus: %q, %q", stdout, stderr)
			}
			said("prometheus", int(state[1][0]-'0'), stdout)
			url := listen(t, map[string]string{"SSCLI_URL": tt.url}, tt.args...)
			one := regexp.MustCompile(fmt.Sprintf(`(?m)^sscli_check_state\{.*\} [%s]$`, strings.Trim(strings.ReplaceAll(fmt.Sprint(tt.states), " ", ""), "[]")))
			if !slices.Contains(tt.states, isOK) {
				scraped(t, url, `sscli_check_state\{.*\} [23]`)
				for range 20 {
					if _, body := get(t, url, nil); strings.Contains(body, "sscli_check_state{") && regexp.MustCompile(`(?m)^sscli_check_state\{.*\} 0$`).MatchString(body) {
						t.Errorf("listen: OK in %s", body)
					}
				}
			}
			scraped(t, url, strings.TrimSuffix(strings.TrimPrefix(one.String(), "(?m)^"), "$"))
		})
	}
}

// TestRestartedEmpty: after a break, nothing is shown of what was, until it was looked at again.
func TestRestartedEmpty(t *testing.T) {
	t.Parallel()
	address := freeport.Address(t)
	store := filled(t, emulator.Options{Listen: address})
	url := listen(t, map[string]string{"SSCLI_URL": store.URL()}, "setpoint", "--match", "a/*", "--count-min", "2", "--lock", "deploy", "--held")
	scraped(t, url, `sscli_match_keys.*} 2`, `sscli_key_present.*} 1`, `sscli_lock_held.*} 1`, `sscli_clock_skew_seconds.*`)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	emulator.Start(t, emulator.Options{Listen: address})
	old := regexp.MustCompile(`(?m)^sscli_(match_keys.* 2|key_present.* 1|lock_held\{.* 1|check_state.* 0)$`)
	gap := regexp.MustCompile(`(?m)^sscli_watch_gaps_total.* [1-9]$`)
	for {
		_, body := get(t, url, nil)
		if gap.MatchString(body) {
			if old.MatchString(body) {
				t.Fatalf("what was is shown after the break:\n%s", body)
			}
			if regexp.MustCompile(`(?m)^sscli_match_keys.* 0$`).MatchString(body) && strings.Count(body, "\nsscli_check_state") == strings.Count(body, "} 2\n") {
				return
			}
		}
		select {
		case <-t.Context().Done():
			t.Fatal(body)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
