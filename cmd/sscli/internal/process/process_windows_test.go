package process

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestEnviron: the names of variables have no case.
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
