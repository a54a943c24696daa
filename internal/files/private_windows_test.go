package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

// privateAccessList returns the access list of a file in SDDL.
func privateAccessList(t *testing.T, name string) string {
	t.Helper()
	sd, err := windows.GetNamedSecurityInfo(name, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		t.Fatal(err)
	}
	return sd.String()
}

// TestOpenPrivate: a file created for its owner gives access only to the user and the system.
func TestOpenPrivate(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secret")
	for range 2 { // the file is created, then opened
		f, err := OpenPrivate(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("a"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(name); string(text) != "aa" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	list := privateAccessList(t, name)
	for _, others := range []string{";;;WD)", ";;;BU)", ";;;AU)", ";;;S-1-1-0)"} { // everyone, users, authenticated users
		if strings.Contains(list, others) {
			t.Errorf("others have access: %s", list)
		}
	}
	if !strings.Contains(list, ";;;SY)") {
		t.Errorf("not the list that was asked for: %s", list)
	}
	if _, err := OpenPrivate(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("exclusive: %v", err)
	}
}
