package disk

import (
	"errors"
	"io/fs"
	"os"
)

// Salvage checks the named file as [Check] does, and copies each undamaged record to a new file. The
// parameter to is the path of the new file. If a file already exists there, Salvage returns an error and
// does not change that file. After any other error, Salvage removes the new file.
func Salvage(name, to string) (report Report, err error) {
	if _, err := os.Lstat(to); err == nil {
		return report, &fs.PathError{Op: "create", Path: to, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return report, err
	}
	f, err := Open(to, Options{}, func(Record) {})
	if err != nil {
		return report, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(to))
		}
	}()
	const perCommit, bytesPerCommit = 10_000, 16 << 20
	var b Batch
	var failed error
	commit := func() {
		if failed == nil {
			failed = f.Commit(&b)
		}
		b = Batch{}
	}
	report, err = Check(name, func(r Record) {
		if b.Put(r); b.Len() == perCommit || b.Size() >= bytesPerCommit {
			commit()
		}
	})
	b.Clock(report.Clock)
	commit()
	return report, errors.Join(err, failed)
}
