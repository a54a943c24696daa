//go:build !windows

package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// mostlyEmpty returns a file in which 100 of 10,000 records are left, and these records.
func mostlyEmpty(t *testing.T) (name string, left []Record) {
	t.Helper()
	name, records := written(t, 10_000)
	f, _ := open(t, name)
	var b Batch
	for i, r := range records {
		if i%100 == 7 {
			left = append(left, r)
		} else {
			b.Delete(r.Key)
		}
	}
	commit(t, f, &b)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return name, left
}

func sizeOf(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestCompact: a file that is mostly empty is smaller after it was opened. It has the same records, the same
// permissions and, through a symbolic link, the same place, and it takes further changes.
func TestCompact(t *testing.T) {
	t.Parallel()
	name, want := mostlyEmpty(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := errors.Join(os.Chmod(name, 0o640), os.Symlink(name, link)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+".compact", []byte("of a process that was killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := sizeOf(t, name)
	f, got := open(t, link)
	if diff := compare(want, got); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
	if now := sizeOf(t, name); now > before/4 {
		t.Errorf("%d bytes are %d after compaction", before, now)
	}
	if _, err := Open(name, Options{}, func(Record) {}); !isLocked(err) {
		t.Errorf("a second server: %v", err)
	}
	var b Batch
	added := record(20_000)
	b.Put(added)
	commit(t, f, &b)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f, got = open(t, name)
	defer f.Close()
	if diff := compare(append(want, added), got); diff != "" || f.Clock() != 1_700_000_000_000 {
		t.Errorf("opened again, with the clock %d (-want +got):\n%s", f.Clock(), diff)
	}
	info, err := os.Lstat(name)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if left, err := filepath.Glob(name + ".*"); err != nil || len(left) != 1 || left[0] != pidFile(name) {
		t.Errorf("beside the file: %q, %v", left, err)
	}
}

func isLocked(err error) bool {
	_, ok := errors.AsType[*LockedError](err)
	return ok
}

// TestCompactFails: a file that cannot be compacted is opened as it is.
func TestCompactFails(t *testing.T) {
	t.Parallel()
	name, want := mostlyEmpty(t)
	before := sizeOf(t, name)
	var got []Record
	o := Options{OpenFile: func(opened string, flag int, perm os.FileMode) (*os.File, error) {
		if opened != name {
			return nil, fmt.Errorf("no room for %s", opened)
		}
		return os.OpenFile(opened, flag, perm)
	}}
	f, err := Open(name, o, func(r Record) { got = append(got, own(r)) })
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if diff := compare(want, got); diff != "" || sizeOf(t, name) != before {
		t.Errorf("%d bytes, of %d before (-want +got):\n%s", sizeOf(t, name), before, diff)
	}
}

// TestReplacedMeanwhile: a file that another process replaced, after it was opened and before it was locked, is
// not used.
func TestReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	name, _ := written(t, 10)
	o := Options{OpenFile: func(opened string, flag int, perm os.FileMode) (*os.File, error) {
		file, err := os.OpenFile(opened, flag, perm)
		data, readErr := os.ReadFile(opened)
		return file, errors.Join(err, readErr, os.WriteFile(opened+".other", data, 0o600), os.Rename(opened+".other", opened))
	}}
	if f, err := Open(name, o, func(Record) {}); !isLocked(err) {
		t.Errorf("opened: %v, %v", f, err)
	}
}
