package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// A Report is the result of [Check].
type Report struct {
	Records int   // number of undamaged records
	Bytes   int64 // size of the keys and values in these records, in bytes
	Size    int64 // size of the file, in bytes
	Clock   int64 // see [Batch.Clock]; 0 = the file has none
	Damages []Damage
	More    int // number of further inconsistencies, which Damages has no room for
}

// A Damage is an inconsistency in a file.
type Damage struct {
	Page uint64 // number of the damaged page; 0 = the damage is not in one page
	Key  []byte // key of the damaged record; empty = other damage, such as an unreadable page
	Err  error
}

func (d Damage) Error() string {
	switch {
	case len(d.Key) > 0:
		return fmt.Sprintf("key %.64q (page %d): %v", d.Key, d.Page, d.Err)
	case d.Page > 0:
		return fmt.Sprintf("page %d: %v", d.Page, d.Err)
	default:
		return d.Err.Error()
	}
}

func (d Damage) Unwrap() error { return d.Err }

// Check reads a file that may be damaged, without changing it. It calls load, unless load is nil, for
// each undamaged record. Check reports damage in the Report, not as an error. The error is a
// *[LockedError], a *[FormatError] or a file system error.
func Check(name string, load func(Record)) (Report, error) {
	if load == nil {
		load = func(Record) {}
	}
	if _, err := os.Stat(name); err != nil {
		return Report{}, err
	}
	c, err := readLocked(name, load)
	return c.Report, err
}

type contents struct {
	Report
	meta meta
	used int64 // number of pages in use
}

// damaged adds d to c.Damages. If c.Damages is full, it counts d in c.More.
func (c *contents) damaged(d Damage) {
	const maxDamages = 20
	if len(c.Damages) == maxDamages {
		c.More++
		return
	}
	c.Damages = append(c.Damages, d)
}

// readFile reads a whole file. The error is a *[FormatError] or a file system error.
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
	return readContents(f, info.Size(), name, load)
}

func readContents(f io.ReaderAt, size int64, name string, load func(Record)) (c contents, err error) {
	c.Size = size
	c.meta, err = readMeta(f)
	switch {
	case errors.Is(err, errLayout):
		return c, &FormatError{Name: name, Got: "unknown"}
	case errors.Is(err, errOneMeta):
		c.damaged(Damage{Err: err})
	case size == 0:
		c.damaged(Damage{Err: errEmpty})
		return c, nil
	case err != nil:
		c.damaged(Damage{Err: err})
		return c, nil
	}
	named := ""
	numbers := make(map[string]int64)
	p := pages{f: f, meta: c.meta, damage: c.damaged}
	p.record = func(bucket string, page uint64, key, value []byte) {
		switch {
		case bucket == bucketMeta && string(key) == keyFormat:
			named = string(value)
		case bucket == bucketMeta:
			n, err := parseNumber(key, value)
			if err != nil {
				c.damaged(Damage{Page: page, Err: fmt.Errorf("the %.32q: %w", key, err)})
			}
			numbers[string(key)] = n
		case bucket == bucketKeys || bucket == bucketLong:
			r, err := parseRecord(key, value, bucket == bucketLong)
			if err != nil {
				c.damaged(Damage{Page: page, Key: bytes.Clone(r.Key), Err: err})
				return
			}
			c.Records++
			c.Bytes += int64(len(r.Key) + len(r.Value))
			load(r)
		}
	}
	p.walk(c.Size)
	for _, seen := range p.seen {
		if seen {
			c.used++
		}
	}
	c.Clock = numbers[keyClock]
	ours := p.buckets[bucketMeta] || p.buckets[bucketKeys] || p.buckets[bucketLong]
	all := p.buckets[bucketMeta] && p.buckets[bucketKeys] && p.buckets[bucketLong]
	switch {
	case len(p.buckets) == 0 && len(c.Damages) == 0:
		c.damaged(Damage{Page: c.meta.root, Err: errNoBuckets})
	case named != "" && named != strconv.Itoa(format):
		return c, &FormatError{Name: name, Got: named}
	case !ours && len(p.buckets) > 0:
		return c, &FormatError{Name: name}
	case ours && (!all || len(p.buckets) > 3 || named == ""):
		c.damaged(Damage{Err: errors.New("its buckets are not the buckets of a data file")})
	case named != "" && len(c.Damages) == 0 && int64(c.Records) != numbers[keyCount]:
		c.damaged(Damage{Err: fmt.Errorf("it should have %d keys", numbers[keyCount])})
	}
	return c, nil
}
