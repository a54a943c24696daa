package disk

import (
	"errors"
	"fmt"
	"os"
	"strconv"
)

// contents is what was read of a file besides its records.
type contents struct {
	meta        meta
	initialized bool // the file names its format
	clock       int64
	records     int
	bytes       int64 // of their keys and values
	damages     []Damage
	more        int // damages that are not in damages
}

// mostDamages is how many damages are named; the others are counted.
const mostDamages = 20

// readFile reads a whole file. Its errors are a [FormatError], and errors of the file system.
func readFile(name string, load func(Record)) (c contents, err error) {
	f, err := os.Open(name)
	if err != nil {
		return c, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return c, err
	}
	damaged := func(d Damage) {
		if len(c.damages) == mostDamages {
			c.more++
			return
		}
		c.damages = append(c.damages, d)
	}
	c.meta, err = readMeta(f, info.Size())
	switch {
	case errors.Is(err, errLayout):
		return c, &FormatError{Name: name, Got: "unknown"}
	case errors.Is(err, errNoFile):
		damaged(Damage{Err: err})
		return c, nil
	case err != nil:
		return c, err
	}
	var foundFormat string
	count := int64(0)
	buckets := make(map[string]bool)
	p := pages{f: f, meta: c.meta, damage: damaged}
	p.named = func(bucket string) { buckets[bucket] = true }
	p.record = func(bucket string, page uint64, key, value []byte) {
		switch bucket {
		case bucketMeta:
			switch string(key) {
			case keyFormat:
				foundFormat = string(value)
			case keyClock, keyCount:
				r, err := parseRecord(key, value, false)
				n := int64(0)
				if err == nil {
					n, err = strconv.ParseInt(string(r.Value), 10, 64)
				}
				if err != nil {
					damaged(Damage{Page: page, Err: fmt.Errorf("the %s: %w", key, err)})
				}
				if string(key) == keyClock {
					c.clock = n
				} else {
					count = n
				}
			default:
				damaged(Damage{Page: page, Err: fmt.Errorf("%.32q is not known in the bucket %s", key, bucketMeta)})
			}
		case bucketKeys, bucketLong:
			r, err := parseRecord(key, value, bucket == bucketLong)
			if err != nil {
				damaged(Damage{Page: page, Key: append([]byte(nil), r.Key...), Err: err})
				return
			}
			c.records++
			c.bytes += int64(len(r.Key) + len(r.Value))
			load(r)
		}
	}
	p.walk(info.Size())
	ours := 0
	for _, b := range []string{bucketMeta, bucketKeys, bucketLong} {
		if buckets[b] {
			ours++
		}
	}
	c.initialized = foundFormat != ""
	switch {
	case c.initialized && foundFormat != strconv.Itoa(format):
		return c, &FormatError{Name: name, Got: foundFormat}
	case ours == 0 && len(buckets) > 0 && len(c.damages) == 0:
		return c, &FormatError{Name: name}
	case ours > 0 && (ours < 3 || len(buckets) > ours || !c.initialized):
		damaged(Damage{Err: errors.New("its buckets are not those of a data file")})
	case c.initialized && len(c.damages) == 0 && int64(c.records) != count:
		damaged(Damage{Err: fmt.Errorf("it should have %d keys", count)})
	}
	return c, nil
}

// A Report is what [Check] found.
type Report struct {
	Records int   // that are as they were written
	Bytes   int64 // of keys and values
	Size    int64 // of the file, in bytes
	Clock   int64 // see [Batch.Clock]; 0: none
	Damages []Damage
	More    int // damages that are not in Damages
}

// Check reads a file, which may be damaged, and changes nothing. It calls load, if that is
// not nil, for each record that is as it was written. The errors are a [LockedError] or
// [FormatError], or errors of the file system.
func Check(name string, load func(Record)) (Report, error) {
	if load == nil {
		load = func(Record) {}
	}
	if _, err := os.Stat(name); err != nil {
		return Report{}, err
	}
	c, err := readLocked(name, Options{LockTimeout: lockTimeout}, load)
	r := Report{Records: c.records, Bytes: c.bytes, Clock: c.clock, Damages: c.damages, More: c.more}
	if info, e := os.Stat(name); e == nil {
		r.Size = info.Size()
	}
	return r, err
}
