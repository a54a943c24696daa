package emulator_test

import (
	"errors"
	"iter"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/emulator"
)

// seeds yields all, then an error unless err is nil.
func seeds(err error, all ...emulator.Seed) iter.Seq2[emulator.Seed, error] {
	return func(yield func(emulator.Seed, error) bool) {
		for _, s := range all {
			if !yield(s, nil) {
				return
			}
		}
		if err != nil {
			yield(emulator.Seed{}, err)
		}
	}
}

// TestLoad: a server starts with its seeds, and keeps the contents of its data file.
func TestLoad(t *testing.T) {
	t.Parallel()
	data := emulator.Data{File: filepath.Join(t.TempDir(), "data"), Asked: true}
	first := emulator.Start(t, emulator.Options{Data: data, Load: seeds(nil,
		emulator.Seed{Key: "kept", Value: []byte("1"), Persist: true},
		emulator.Seed{Key: "\x00", Value: []byte("\xff\r\n")},
		emulator.Seed{Key: "short", Value: []byte("2"), TTL: time.Minute},
		emulator.Seed{Key: "kept", Value: []byte("twice")},
	)})
	if e, _ := first.Get("\x00"); string(e.Value) != "\xff\r\n" || e.Persist || !e.Expires.IsZero() {
		t.Errorf("got %+v", e)
	}
	first.FastForward(time.Minute + time.Second)
	if _, found := first.Get("short"); found {
		t.Error("short did not expire")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := emulator.Start(t, emulator.Options{Data: data, Load: seeds(nil, emulator.Seed{Key: "kept", Value: []byte("new")}, emulator.Seed{Key: "more", Value: nil})})
	if e, found := second.Get("kept"); !found || string(e.Value) != "1" {
		t.Errorf("kept: got %+v", e)
	}
	if e, found := second.Get("more"); !found || len(e.Value) != 0 {
		t.Errorf("more: got %+v, %v", e, found)
	}
}

// TestLoadFenced: a seed leaves a key of the data file alone, also if a write of the key requires a fencing token.
func TestLoadFenced(t *testing.T) {
	t.Parallel()
	o := emulator.Options{
		Data: emulator.Data{File: filepath.Join(t.TempDir(), "data")},
		Load: seeds(nil, emulator.Seed{Key: "fenced", Value: []byte("seed")}, emulator.Seed{Key: "more", Value: []byte("seed")}),
	}
	first := emulator.Start(t, o)
	want, err := first.SetEntry("fenced", emulator.Entry{Value: []byte("1"), Fence: emulator.Version{Wall: 1, Node: "lock"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := emulator.Start(t, o)
	if e, _ := second.Get("fenced"); string(e.Value) != "1" || e.Version.Compare(want) != 0 {
		t.Errorf("got %+v", e)
	}
}

// TestLoadRestricted: the rules are about clients, and seeds come from none.
func TestLoadRestricted(t *testing.T) {
	t.Parallel()
	all := seeds(nil, emulator.Seed{Key: "a", Value: []byte("1")})
	for _, o := range []emulator.Options{
		{Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.Method != emulator.Write }), Load: all},
		{CheckLogin: emulator.Passwords(map[string]string{"ann": "secret"}), Policy: parseRules(t, "ann:Read:*"), Load: all},
	} {
		s := emulator.Start(t, o)
		if e, _ := s.Get("a"); string(e.Value) != "1" {
			t.Errorf("got %+v", e)
		}
		if _, err := s.Set("a", "2"); err == nil {
			t.Error("the rules do not apply after New")
		}
	}
}

// TestLoadErrorAfterExpiry: a key that expired while others were loaded counts as added.
func TestLoadErrorAfterExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := emulator.New(emulator.Options{InProcess: true, Load: func(yield func(emulator.Seed, error) bool) {
			yield(emulator.Seed{Key: "a", TTL: time.Second}, nil)
			time.Sleep(2 * time.Second)
			yield(emulator.Seed{}, errors.New("the end"))
		}})
		if load, ok := errors.AsType[*emulator.LoadError](err); !ok || load.Added != 1 {
			t.Errorf("%+v", load)
		}
	})
}

// TestLoadErrors: New returns errors in the seeds and releases its resources.
func TestLoadErrors(t *testing.T) {
	t.Parallel()
	bad := errors.New("bad")
	file := filepath.Join(t.TempDir(), "data")
	for _, tt := range []struct {
		load iter.Seq2[emulator.Seed, error]
		want string
	}{
		{seeds(bad, emulator.Seed{Key: "a"}), "load: bad"},
		{seeds(nil, emulator.Seed{Key: "a"}, emulator.Seed{Key: "b"}), `load: set "b": the store answered: the quota has been exceeded`},
	} {
		_, err := emulator.New(emulator.Options{MaxKeys: 1, Data: emulator.Data{File: file}, Load: tt.load})
		if load, ok := errors.AsType[*emulator.LoadError](err); !ok || load.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	emulator.Start(t, emulator.Options{Data: emulator.Data{File: file}}) // the file is not locked
}
