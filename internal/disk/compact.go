package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	bolt "go.etcd.io/bbolt"

	"github.com/sscli/sscli/internal/files"
)

// minCompact is the unused space, in bytes, below which a file is not compacted.
const minCompact = 1 << 20

// mostlyEmpty reports whether less than half of the file is in use.
func (c contents) mostlyEmpty() bool {
	used := c.used * c.meta.pageSize
	return c.Size-used > max(used, minCompact)
}

// compact copies the records to a new file and puts it in place of the old one. Until the new file is
// complete and on the disk, the old one stays in place. Both are locked until then, so that no other
// process uses either. A file that cannot be compacted, such as for lack of room, stays as it is. An error
// means that it is not known which of the two a crash of the machine would leave.
//
// Windows cannot replace an open file, and a closed one is not locked, so compact does nothing there.
func (f *File) compact(o Options) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	target, err := filepath.EvalSymlinks(f.name)
	if err != nil {
		return nil
	}
	draft := target + ".compact" // who has locked the file may also use this name
	compacted := &File{name: f.name, clock: f.clock, count: f.count}
	if remove(draft) != nil || compacted.open(draft, o) != nil {
		return nil
	}
	err = compacted.copyFrom(f.db, draft)
	if err == nil {
		err = files.CopyAccess(target, draft)
	}
	if err == nil {
		err = os.Rename(draft, target)
	}
	if err != nil {
		_ = compacted.db.Close()
		_ = remove(draft)
		return nil
	}
	old := f.db
	*f = *compacted
	return errors.Join(syncDir(filepath.Dir(target)), old.Close())
}

// copyFrom copies the content of another file, syncs the copy, and checks it.
func (f *File) copyFrom(db *bolt.DB, draft string) error {
	const perCommit = 1 << 20 // bytes
	f.db.NoSync = true
	if err := bolt.Compact(f.db, db, perCommit); err != nil {
		return err
	}
	f.db.NoSync = false
	if err := f.db.Sync(); err != nil {
		return err
	}
	read, err := readFile(draft, func(Record) {})
	switch {
	case err != nil:
		return err
	case len(read.Damages) > 0:
		return read.Damages[0]
	case read.Records != f.count || read.Clock != f.clock:
		return fmt.Errorf("the copy has %d of %d keys", read.Records, f.count)
	}
	return nil
}

func remove(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
