package client_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

// scan returns all pages of a scan, or its error.
func scan(t *testing.T, s *client.Session, pattern string) (pages [][]string, err error) {
	t.Helper()
	for page, err := range s.Scan(t.Context(), pattern) {
		if err != nil {
			return pages, err
		}
		pages = append(pages, page.Keys)
	}
	return pages, nil
}

func TestScan(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options emulator.Options
		keys    int
		pages   []int // number of keys on each page
	}{
		{"nothing", emulator.Options{}, 0, []int{0}},
		{"one page", emulator.Options{ScanPage: 5}, 5, []int{5}},
		{"several pages", emulator.Options{ScanPage: 3}, 7, []int{3, 3, 1}},
		{"an empty page first", emulator.Options{ScanPage: 3, Variants: emulator.Variants{ScanEmptyPage: true}}, 4, []int{0, 3, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.options.Variants.ScanGlobBytes = true // so that keys of any bytes are listed
			onBoth(t, tt.options, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
				var want []string
				for i := range tt.keys {
					key := fmt.Sprintf("k\x00\xff\r\n%d", i)
					put(t, s, key, "")
					want = append(want, key)
				}
				put(t, s, "other", "")
				pages := must(scan(t, s, "k*"))(t)
				var lengths []int
				for _, page := range pages {
					lengths = append(lengths, len(page))
				}
				if !slices.Equal(lengths, tt.pages) {
					t.Errorf("pages of %d keys, want %d", lengths, tt.pages)
				}
				if got := slices.Concat(pages...); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		})
	}
}

// TestScanStops: a caller that stops the scan requests no further page.
func TestScanStops(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{ScanPage: 1})
	s := dial(t, store, client.Options{})
	for i := range 5 {
		must(store.Set(fmt.Sprint(i), ""))(t)
	}
	before := store.State().Requests
	for range s.Scan(t.Context(), "*") {
		break
	}
	if n := store.State().Requests - before; n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestScanAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reply string
		keys  []string // nil = the reply is malformed
		next  string
	}{
		{"*1\r\n*0\r\n", []string{}, ""},
		{"*1\r\n*1\r\n$1\r\nk\r\n", []string{"k"}, ""},
		{"*2\r\n*1\r\n$1\r\nk\r\n$4\r\n1;1;\r\n", []string{"k"}, "1;1;"},
		{"*2\r\n*0\r\n$3\r\n\x00\xffx\r\n", []string{}, "\x00\xffx"},
		{"*0\r\n", nil, ""},
		{"*3\r\n*0\r\n$1\r\nx\r\n$1\r\nx\r\n", nil, ""},
		{"*1\r\n$-1\r\n", nil, ""},
		{"*1\r\n*1\r\n$-1\r\n", nil, ""},
		{"*2\r\n*0\r\n$-1\r\n", nil, ""},
		{"*2\r\n*0\r\n:1\r\n", nil, ""},
		{"$1\r\nk\r\n", nil, ""},
		{"+OK\r\n", nil, ""},
		{"*1\r\n*0\r\nx", nil, ""},
	} {
		store, s := open(t)
		store.Intercept(always(emulator.Action{Rewrite: func(a *emulator.Answer) { a.Payload = []byte(tt.reply) }}))
		r, err := s.Do(t.Context(), client.Scan("*", nil))
		if tt.keys == nil {
			if _, ok := errors.AsType[*client.ReplyError](err); !ok {
				t.Errorf("%q: got %v, %v; want an ReplyError", tt.reply, r, err)
			}
			continue
		}
		if page, _ := r.(client.ScanResult); err != nil || !slices.Equal(page.Keys, tt.keys) || string(page.Next) != tt.next {
			t.Errorf("%q: got %+v, %v", tt.reply, r, err)
		}
	}
}

func TestScanFaults(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{Variants: emulator.Variants{NoScan: true}})
	s := dial(t, store, client.Options{})
	_, err := scan(t, s, "*")
	if e := as[*wire.StoreError](t, err); e.Kind() != wire.ErrorUnknownCommand {
		t.Error(err)
	}
	_, err = scan(t, s, "")
	as[*client.InvalidError](t, err)

	// A cursor that never advances would keep Scan in a loop.
	store.Intercept(always(emulator.Action{Rewrite: func(a *emulator.Answer) { a.Payload = []byte("*2\r\n*0\r\n$1\r\nx\r\n") }}))
	pages, err := scan(t, s, "*")
	if as[*client.ReplyError](t, err); len(pages) != 1 {
		t.Errorf("%d pages before the error, want 1", len(pages))
	}
}

// TestScanFrom resumes a scan after each of its pages.
func TestScanFrom(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{ScanPage: 3}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		for i := range 7 {
			put(t, s, fmt.Sprint(i), "")
		}
		var rest []string
		for page, err := range s.Scan(t.Context(), "*") {
			if err != nil {
				t.Fatal(err)
			}
			rest = append(rest, page.Keys...)
			if page.Next == nil {
				break
			}
			again := slices.Clone(rest)
			for later, err := range s.ScanFrom(t.Context(), "*", page.Next) {
				if err != nil {
					t.Fatal(err)
				}
				again = append(again, later.Keys...)
			}
			if want := []string{"0", "1", "2", "3", "4", "5", "6"}; !slices.Equal(again, want) {
				t.Errorf("after %q: got %q", rest, again)
			}
		}
	})
}

// TestScanAgain: each loop over the same sequence lists all keys, also after a loop that ended early.
func TestScanAgain(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t, emulator.Options{ScanPage: 2})
	s := dial(t, store, client.Options{})
	want := []string{"0", "1", "2", "3", "4"}
	for _, key := range want {
		put(t, s, key, "")
	}
	pages := s.Scan(t.Context(), "*")
	for range 2 {
		var got []string
		for page, err := range pages {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, page.Keys...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		for page := range pages {
			if len(page.Keys) > 0 && page.Keys[0] != "0" {
				break
			}
		}
	}
}
