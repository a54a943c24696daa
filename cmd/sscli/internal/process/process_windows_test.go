package process

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestEnviron: the names of variables are case-insensitive.
func TestEnviron(t *testing.T) {
	t.Setenv("Sscli_Test_Set", "old")
	t.Setenv("Sscli_Test_Drop", "old")
	env := Environ(map[string]string{"SSCLI_TEST_SET": "new"}, "SSCLI_TEST_DROP")
	got := slices.DeleteFunc(env, func(kv string) bool { return !strings.HasPrefix(strings.ToUpper(kv), "SSCLI_TEST_") })
	if want := []string{"SSCLI_TEST_SET=new"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestStartErrorPath(t *testing.T) {
	e := &StartError{`C:\dir\no such.exe`, CodeNotFound, os.ErrNotExist}
	if got, want := e.Error(), `run "C:\dir\no such.exe": file does not exist`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestFindHere: a program in the current directory is not found by its name alone.
func TestFindHere(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("deploy.bat", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"deploy", "deploy.bat"} {
		_, err := find(name)
		want := `run "` + name + `": not in PATH; to run the program in this directory, write .\deploy.bat`
		if e, ok := errors.AsType[*StartError](err); !ok || e.Code != CodeNotFound || e.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if path, err := find(`.\deploy.bat`); err != nil {
		t.Errorf("%s, %v", path, err)
	}
}

func TestEnvironmentBlock(t *testing.T) {
	for _, tt := range []struct {
		env  []string
		want []uint16 // nil = expect an error
	}{
		{nil, []uint16{0, 0}},
		{[]string{"A=1", "B="}, []uint16{'A', '=', '1', 0, 'B', '=', 0, 0}},
		{[]string{"A=😀"}, []uint16{'A', '=', 0xd83d, 0xde00, 0, 0}},
		{[]string{"A=\xed\xa0\xbd"}, []uint16{'A', '=', 0xd83d, 0, 0}}, // half of a surrogate pair, as os.Environ returns it
		{[]string{"A=1", "SSCLI_LOCK_NAME=a\x00\x00b", "C=1"}, nil},
	} {
		got, err := environmentBlock(tt.env)
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.want != nil) {
			t.Errorf("%q: %x, %v, want %x", tt.env, got, err, tt.want)
		}
	}
}
