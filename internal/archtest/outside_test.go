package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestOutside type-checks a program of another module, which can import no internal package.
func TestOutside(t *testing.T) {
	t.Parallel()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module example.com/outside\n" + string(mod[len("module "+module+"\n"):]) +
			"\nrequire " + module + " v0.0.0\nreplace " + module + " => " + root + "\n",
		"go.sum":  string(sum),
		"main.go": outside,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "vet", "-mod=mod", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

const outside = `package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
)

func main() {
	ctx := context.Background()
	store, err := emulator.New(emulator.Options{InProcess: true, Observe: func(emulator.Event) {}})
	check(err)
	defer store.Close()
	s, err := client.New(client.Options{Dial: store.Dial})
	check(err)
	defer s.Close()
	check(s.WithLock(ctx, "lock", func(ctx context.Context, l *client.Lock) error {
		_, err := l.Set(ctx, "b", []byte("1"))
		return err
	}))
	set := client.Set("a", []byte("1"))
	for f := range s.Pipeline(8).Results(ctx, slices.Values([]client.Command{set})) {
		_, err := client.As[client.SetResult](f.Wait(ctx))
		check(err)
	}
	var keys []string
	for key, err := range s.Keys(ctx, "*") {
		check(err)
		keys = append(keys, key)
	}
	slices.Sort(keys)
	_, err = s.Set(ctx, "b", nil)
	refused, _ := errors.AsType[*client.StoreError](err)
	for now, err := range s.Follow(ctx, "b") {
		check(err)
		fmt.Printf("%s %v %t %s\n", now.Value, keys, errors.Is(refused, client.ErrFenced), refused.Kind())
		return
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
`
