package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/sscli/sscli/repl"
)

// TestPrivateFiles: only the user and the system may read a file that may contain values of the store.
func TestPrivateFiles(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sscli := func(args ...string) func(string) error {
		return func(name string) error {
			cmd := &exec.Cmd{Path: self, Args: []string{"sscli"}, Stderr: t.Output()}
			for _, arg := range args {
				cmd.Args = append(cmd.Args, strings.ReplaceAll(arg, "FILE", name))
			}
			return cmd.Run()
		}
	}
	for what, create := range map[string]func(name string) error{
		"history": func(name string) error {
			_, err := repl.OpenHistory(name)
			return err
		},
		"trace":  sscli("--embedded", "--trace-file", "FILE", "set", "a", "1"),
		"data":   sscli("serve", "-q", "--listen", "127.0.0.1:0", "--data", "FILE", "--", "cmd", "/c", "exit"),
		"export": sscli("--embedded", "export", "*", "-f", "FILE"),
	} {
		name := filepath.Join(t.TempDir(), what)
		if err := create(name); err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		access, err := windows.GetNamedSecurityInfo(name, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
		if err != nil {
			t.Fatal(err)
		}
		list := access.String()
		others := strings.Contains(list, ";;;WD)") || strings.Contains(list, ";;;BU)") || strings.Contains(list, ";;;AU)")
		if others || !strings.Contains(list, ";;;SY)") {
			t.Errorf("%s: others have access: %s", what, list)
		}
	}
}
