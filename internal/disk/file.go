package disk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/sscli/sscli/internal/files"
)

// A File is a data file that this process has locked. Its methods must not be called
// concurrently.
type File struct {
	db    *bolt.DB
	name  string
	info  os.FileInfo // identifies the file that was opened
	clock int64
	count int // number of records
}

// Options configure [Open]. The zero value is ready to use.
type Options struct {
	// OpenFile opens the file for writing; nil = files.OpenPrivate is used.
	OpenFile func(name string, flag int, perm os.FileMode) (*os.File, error)
}

const (
	format = 1 // version of the file layout

	bucketMeta = "sscli"
	bucketKeys = "keys"
	bucketLong = "long"

	keyFormat = "format"
	keyClock  = "clock"
	keyCount  = "count"

	// lockTimeout is how long Open and Check wait for another process to close the file.
	lockTimeout = time.Second
)

// A LockedError reports a file that another process is using.
type LockedError struct {
	Name string
	PID  int // id of the other process; 0 = not known
}

func (e *LockedError) Error() string {
	if e.PID != 0 {
		return fmt.Sprintf("%s is in use by the process %d", e.Name, e.PID)
	}
	return e.Name + " is in use by another process"
}

// A RemovedError reports a file that was removed, moved or replaced while it was open.
type RemovedError struct{ Name string }

func (e *RemovedError) Error() string {
	return e.Name + " was removed, moved or replaced while it was in use"
}

// A FormatError reports a file in another format, which a later version of sscli or another program wrote.
type FormatError struct {
	Name string
	Got  string // the format of the file; "" = the file does not name one
}

func (e *FormatError) Error() string {
	if e.Got == "" {
		return e.Name + " is not a data file of sscli"
	}
	return fmt.Sprintf("%s has the format %.32q, and this version reads the format %d", e.Name, e.Got, format)
}

// A DamageError reports a damaged file.
type DamageError struct {
	Name string
	Report
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged: %v; %d keys are readable", e.Name, e.Damages[0], e.Records)
}

func (e *DamageError) Unwrap() error { return e.Damages[0] }

// Open locks a file, creates it if it does not exist, and calls load for each record. Records come
// in the order of their keys, except for keys that are too long for bbolt. A record's slices are
// valid until load returns. Open may call load before it returns an error. The error is or wraps a
// *[LockedError], a *[FormatError], a *[DamageError] or a file system error.
func Open(name string, o Options, load func(Record)) (*File, error) {
	read, err := readLocked(name, load)
	switch {
	case err != nil:
		return nil, err
	case len(read.Damages) > 0:
		return nil, &DamageError{Name: name, Report: read.Report}
	}
	if read.Size == 0 {
		if err := o.create(name); err != nil {
			return nil, err
		}
	}
	f := &File{name: name, clock: read.Clock, count: read.Records}
	if err := f.open(name, o); err != nil {
		return nil, openError(name, err)
	}
	if err := f.begin(read); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if read.mostlyEmpty() {
		if err := f.compact(o); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// open opens and locks the file at path: f.name, or a copy that will replace it.
func (f *File) open(path string, o Options) (err error) {
	var file *os.File
	if f.db, err = bolt.Open(path, 0o600, o.bolt(&file)); err != nil {
		return err
	}
	if f.info, err = file.Stat(); err != nil {
		return errors.Join(err, f.db.Close())
	}
	return nil
}

// bolt returns the options to open a file with bbolt. If opened is not nil, bbolt stores the file there.
func (o Options) bolt(opened **os.File) *bolt.Options {
	open := o.OpenFile
	if open == nil {
		open = files.OpenPrivate
	}
	return &bolt.Options{
		Timeout: lockTimeout,
		OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
			file, err := open(name, flag, perm)
			if opened != nil {
				*opened = file
			}
			return file, err
		},
		// By default bbolt writes the list of free pages with each commit. Without the list, bbolt must
		// read the whole tree when it opens the file. This costs little, because Open reads the tree anyway.
		NoFreelistSync: true, FreelistType: bolt.FreelistMapType,
	}
}

// ErrNotRegular means that the data file is a directory or a device.
var ErrNotRegular = errors.New("not a regular file")

// readLocked reads a file under a shared lock, so that no other process changes the file meanwhile. For a
// missing file it returns the zero contents.
func readLocked(name string, load func(Record)) (contents, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return contents{}, nil
	case err != nil:
		return contents{}, err
	case !info.Mode().IsRegular():
		return contents{}, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	// With ReadOnly, bbolt takes a shared lock. bbolt refuses to open some damaged files;
	// readFile then reads the file without the lock to report the damage.
	db, err := bolt.Open(name, 0o600, &bolt.Options{Timeout: lockTimeout, ReadOnly: true})
	switch {
	case err == nil:
		defer db.Close()
	// Do not refuse an empty file here; readFile reports it as damaged. bbolt tries to initialize an
	// empty file even with ReadOnly, and on Windows this write fails with ErrPermission.
	case errors.Is(err, bolterrors.ErrTimeout), errors.Is(err, fs.ErrPermission) && info.Size() > 0:
		return contents{}, openError(name, err)
	}
	return readFile(name, load)
}

func openError(name string, err error) error {
	if errors.Is(err, bolterrors.ErrTimeout) {
		return &LockedError{Name: name, PID: lockedBy(name)}
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err // a PathError includes the name
	}
	return fmt.Errorf("open %s: %w", name, err)
}

// create creates a file and its buckets atomically, so that a crash cannot leave an unfinished
// file: it writes a draft, then links it under the final name. The draft has a name that no other
// process uses, before or after a crash: in a container, every process may have the same id.
func (o Options) create(name string) (err error) {
	target, err := files.Follow(name)
	if err != nil {
		return err
	}
	draft := target + "." + rand.Text() + ".new"
	defer func() {
		err = errors.Join(err, remove(draft))
	}()
	db, err := bolt.Open(draft, 0o600, o.bolt(nil))
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: e.Op, Path: name, Err: e.Err}
	} else if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	if err := errors.Join(addBuckets(db), db.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	err = os.Link(draft, target)
	switch {
	case errors.Is(err, fs.ErrExist): // another process has created the file in the meantime
		return &LockedError{Name: name}
	case err != nil: // the file system may not support links
		err = os.Rename(draft, target)
	}
	return errors.Join(err, syncDir(filepath.Dir(target)))
}

// begin checks that the file has not changed since readLocked, and writes this process's id to the pid
// file.
func (f *File) begin(read contents) error {
	if read.meta.transaction != 0 {
		changed := false
		err := f.db.View(func(tx *bolt.Tx) error {
			changed = uint64(tx.ID()) != read.meta.transaction
			return nil
		})
		if err != nil || changed { // another process wrote to the file after readLocked unlocked it
			return errors.Join(err, &LockedError{Name: f.name})
		}
	}
	now, err := os.Stat(f.name)
	switch {
	case err != nil:
		return err
	case !os.SameFile(now, f.info): // another process compacted the file before it unlocked it
		return &LockedError{Name: f.name}
	}
	// Ignore an error: the process id is only for error messages, and the lock does not depend on it.
	_ = os.WriteFile(pidFile(f.name), fmt.Appendf(nil, "%d\n", os.Getpid()), 0o644)
	return nil
}

func addBuckets(db *bolt.DB) error {
	return db.Update(func(tx *bolt.Tx) error {
		for _, name := range []string{bucketMeta, bucketKeys, bucketLong} {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte(bucketMeta)).Put([]byte(keyFormat), strconv.AppendInt(nil, format, 10))
	})
}

// pidFile returns the name of the file with the id of the process that has the data file open.
func pidFile(name string) string { return name + ".pid" }

func lockedBy(name string) int {
	text, err := os.ReadFile(pidFile(name))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return 0
	}
	return pid
}

// Clock returns the wall clock that was in the file when it was opened, see [Batch.Clock]; 0 = there was none.
func (f *File) Clock() int64 { return f.clock }

// Commit writes the changes of a batch. After an error the caller must close the file and open it
// again: the file then has either all changes of the batch or none. Commit returns a
// *[RemovedError] if the file was removed, moved or replaced.
func (f *File) Commit(b *Batch) error {
	count := f.count
	err := f.db.Update(func(tx *bolt.Tx) error {
		for _, c := range b.changes {
			bucket := tx.Bucket([]byte(bucketKeys))
			if c.long {
				bucket = tx.Bucket([]byte(bucketLong))
			}
			key, record := b.data[c.begin:c.record], b.encoded(&c)
			if bucket.Get(key) != nil {
				count--
			}
			if len(record) == 0 {
				if err := bucket.Delete(key); err != nil {
					return err
				}
				continue
			}
			count++
			if err := bucket.Put(key, record); err != nil {
				return err
			}
		}
		meta := tx.Bucket([]byte(bucketMeta))
		if count != f.count {
			if err := putNumber(meta, keyCount, int64(count)); err != nil {
				return err
			}
		}
		if b.clock == 0 {
			return nil
		}
		return putNumber(meta, keyClock, b.clock)
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", f.name, err)
	}
	if now, err := os.Stat(f.name); err != nil || !os.SameFile(now, f.info) {
		return &RemovedError{Name: f.name}
	}
	f.count = count
	return nil
}

// putNumber writes a number as a record, so that a checksum protects it.
func putNumber(b *bolt.Bucket, key string, n int64) error {
	r := Record{Key: []byte(key), Value: strconv.AppendInt(nil, n, 10)}
	return b.Put(r.Key, appendRecord(nil, r, false))
}

func parseNumber(key, data []byte) (int64, error) {
	r, err := parseRecord(key, data, false)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(r.Value), 10, 64)
}

// Close closes and unlocks the file.
func (f *File) Close() error {
	if lockedBy(f.name) == os.Getpid() {
		_ = os.Remove(pidFile(f.name)) // written by begin
	}
	if err := f.db.Close(); err != nil {
		return fmt.Errorf("close %s: %w", f.name, err)
	}
	return nil
}

// syncDir syncs a directory, so that the name of a new file in it survives a crash. Windows does not
// require this.
func syncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
