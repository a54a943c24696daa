package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// A File is a data file that this process has locked. Its methods may not be called at the
// same time.
type File struct {
	db    *bolt.DB
	name  string
	clock int64
	count int // of the records
}

// Options configure [Open]. The zero value is the ordinary case.
type Options struct {
	// LockTimeout is how long Open waits for another process to leave the file; 0: 1 s.
	LockTimeout time.Duration

	// OpenFile opens the file for writing, in place of os.OpenFile.
	OpenFile func(name string, flag int, perm os.FileMode) (*os.File, error)
}

const (
	format = 1 // of the layout that is written here

	bucketMeta = "sscli"
	bucketKeys = "keys"
	bucketLong = "long"

	keyFormat = "format"
	keyClock  = "clock"
	keyCount  = "count"

	lockTimeout = time.Second
)

// A LockedError is a file that another process uses.
type LockedError struct {
	Name string
	PID  int // of that process; 0: not known
}

func (e *LockedError) Error() string {
	if e.PID != 0 {
		return fmt.Sprintf("%s is in use by the process %d", e.Name, e.PID)
	}
	return e.Name + " is in use by another process"
}

// A FormatError is a file whose layout is not known here: of a later version, or of another
// program.
type FormatError struct {
	Name string
	Got  string // the format that the file names; "": none
}

func (e *FormatError) Error() string {
	if e.Got == "" {
		return e.Name + " is no data file of sscli"
	}
	return fmt.Sprintf("%s has the format %.32q, and this version reads the format %d", e.Name, e.Got, format)
}

// A DamageError is a file that is not as it was written.
type DamageError struct {
	Name     string
	Readable int // records that are as they were written
	Damages  []Damage
	More     int // damages that are not in Damages
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged: %v; %d keys are readable", e.Name, e.Damages[0], e.Readable)
}

func (e *DamageError) Unwrap() error { return e.Damages[0] }

// Open locks a file, which is made if it does not exist, and calls load for each of its
// records, in the order of the keys except for very long ones. What a record lends is good
// during the call. The errors are a [LockedError], [FormatError] or [DamageError], or errors of
// the file system; load may have been called before.
func Open(name string, o Options, load func(Record)) (*File, error) {
	if o.LockTimeout == 0 {
		o.LockTimeout = lockTimeout
	}
	read, err := readLocked(name, o, load)
	switch {
	case err != nil:
		return nil, err
	case len(read.damages) > 0:
		return nil, &DamageError{Name: name, Readable: read.records, Damages: read.damages, More: read.more}
	}
	db, err := bolt.Open(name, 0o600, &bolt.Options{
		Timeout: o.LockTimeout, OpenFile: o.OpenFile,
		// The list of free pages would be written with each commit. Without, opening reads
		// the whole tree, which Open does anyway.
		NoFreelistSync: true, FreelistType: bolt.FreelistMapType,
	})
	if err != nil {
		return nil, openError(name, err)
	}
	f := &File{db: db, name: name, clock: read.clock, count: read.records}
	if err := f.begin(read); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readLocked reads a file while nobody writes to it.
func readLocked(name string, o Options, load func(Record)) (contents, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return contents{}, nil
	case err != nil:
		return contents{}, err
	case !info.Mode().IsRegular():
		return contents{}, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	case info.Size() == 0:
		return contents{}, nil
	}
	// The lock is shared with others that read. That a damaged file cannot be opened says the
	// reader below, who finds out why.
	db, err := bolt.Open(name, 0o600, &bolt.Options{Timeout: o.LockTimeout, ReadOnly: true})
	switch {
	case err == nil:
		defer db.Close()
	case errors.Is(err, bolterrors.ErrTimeout), errors.Is(err, fs.ErrPermission):
		return contents{}, openError(name, err)
	}
	return readFile(name, load)
}

func openError(name string, err error) error {
	if errors.Is(err, bolterrors.ErrTimeout) {
		return &LockedError{Name: name, PID: lockedBy(name)}
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err // which has the name
	}
	return fmt.Errorf("open %s: %w", name, err)
}

// begin makes the buckets of a new file and says whose the file is.
func (f *File) begin(read contents) error {
	if read.meta.transaction != 0 {
		changed := false
		err := f.db.View(func(tx *bolt.Tx) error {
			changed = uint64(tx.ID()) != read.meta.transaction
			return nil
		})
		if err != nil || changed { // between the two times that it was locked
			return errors.Join(err, &LockedError{Name: f.name})
		}
	}
	if !read.initialized {
		err := f.db.Update(func(tx *bolt.Tx) error {
			for _, name := range []string{bucketMeta, bucketKeys, bucketLong} {
				if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
					return err
				}
			}
			return tx.Bucket([]byte(bucketMeta)).Put([]byte(keyFormat), strconv.AppendInt(nil, format, 10))
		})
		if err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
		if err := syncDir(filepath.Dir(f.name)); err != nil {
			return err
		}
	}
	// It only helps to say who has the file: the lock is the file's own.
	_ = os.WriteFile(pidFile(f.name), fmt.Appendf(nil, "%d\n", os.Getpid()), 0o644)
	return nil
}

// pidFile is where the process that has a data file open leaves its id.
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

// Clock returns the wall clock that was kept with [Batch.Clock]; 0: none was.
func (f *File) Clock() int64 { return f.clock }

// Commit writes the changes of a batch. After an error none of them may be relied on, and
// neither may the file: close it. When it is opened again it has all changes of the
// batch or none.
func (f *File) Commit(b *Batch) error {
	count := f.count
	err := f.db.Update(func(tx *bolt.Tx) error {
		keys, long := tx.Bucket([]byte(bucketKeys)), tx.Bucket([]byte(bucketLong))
		for _, c := range b.changes {
			bucket, key, record := keys, b.data[c.begin:c.record], b.data[c.record:c.end]
			if c.long {
				bucket = long
			}
			if bucket.Get(key) != nil {
				count--
			}
			if len(record) > 0 {
				count++
			}
			var err error
			if len(record) == 0 {
				err = bucket.Delete(key)
			} else {
				err = bucket.Put(key, record)
			}
			if err != nil {
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
	f.count = count
	return nil
}

// putNumber writes a number as a record, for its checksum.
func putNumber(b *bolt.Bucket, key string, n int64) error {
	r := Record{Key: []byte(key), Value: strconv.AppendInt(nil, n, 10)}
	return b.Put(r.Key, appendRecord(nil, r, false))
}

// Close unlocks the file.
func (f *File) Close() error {
	if lockedBy(f.name) == os.Getpid() {
		_ = os.Remove(pidFile(f.name)) // see begin
	}
	if err := f.db.Close(); err != nil {
		return fmt.Errorf("close %s: %w", f.name, err)
	}
	return nil
}
