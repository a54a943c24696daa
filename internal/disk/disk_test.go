package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
)

// own returns a copy of a record with its own memory.
func own(r Record) Record {
	r.Key, r.Value, r.Version, r.Fence = bytes.Clone(r.Key), bytes.Clone(r.Value), bytes.Clone(r.Version), bytes.Clone(r.Fence)
	return r
}

func equal(a, b Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && bytes.Equal(a.Version, b.Version) &&
		bytes.Equal(a.Fence, b.Fence) && a.Expires == b.Expires && a.Persist == b.Persist
}

// compare returns how records differ. cmp.Diff takes seconds for thousands of equal ones.
func compare(want, got []Record) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

// open returns a file and its records.
func open(t *testing.T, name string) (*File, []Record) {
	t.Helper()
	var records []Record
	f, err := Open(name, Options{}, func(r Record) { records = append(records, own(r)) })
	if err != nil {
		t.Fatal(err)
	}
	return f, records
}

func commit(t *testing.T, f *File, b *Batch) {
	t.Helper()
	if err := f.Commit(b); err != nil {
		t.Fatal(err)
	}
	*b = Batch{}
}

func record(i int) Record {
	r := Record{
		Key: fmt.Appendf(nil, "key/%05d", i), Value: bytes.Repeat([]byte{byte(i)}, i%300),
		Version: fmt.Appendf(nil, "%d:%d:StateStore", 1696374425000+int64(i), i), Fence: []byte{}, Persist: i%3 == 0,
	}
	if i%2 == 0 {
		r.Fence = fmt.Appendf(nil, "%d:0:lock", i)
	}
	if i%5 == 0 {
		r.Expires = 1_800_000_000_000_000 + int64(i)
	}
	return r
}

// written returns a file with n records, in the order of their keys.
func written(t *testing.T, n int) (name string, records []Record) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "store.db")
	f, _ := open(t, name)
	var b Batch
	for _, i := range rand.Perm(n) {
		if b.Put(record(i)); b.Len() == 100 {
			commit(t, f, &b)
		}
	}
	b.Clock(1_700_000_000_000)
	commit(t, f, &b)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		records = append(records, record(i))
	}
	return name, records
}

func TestRoundTrip(t *testing.T) {
	name, want := written(t, 5000)
	f, got := open(t, name)
	if diff := compare(want, got); diff != "" || f.Clock() != 1_700_000_000_000 {
		t.Fatalf("clock %d (-want +got):\n%s", f.Clock(), diff)
	}
	long := Record{Key: bytes.Repeat([]byte("k"), bolt.MaxKeySize+1), Value: bytes.Repeat([]byte("v"), 1<<20), Version: []byte("1:0:s"), Fence: []byte{}}
	var b Batch
	for _, r := range want[:4900] {
		b.Delete(r.Key)
	}
	b.Put(record(0))
	changed := record(4950)
	changed.Value, changed.Expires = []byte("new"), 0
	b.Put(record(4951))
	b.Put(changed)
	b.Put(long)
	commit(t, f, &b)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	want = append([]Record{record(0)}, want[4900:]...)
	want[1+50] = changed
	f, got = open(t, name)
	if diff := compare(append(slices.Clone(want), long), got); diff != "" {
		t.Fatalf("after the changes (-want +got):\n%.2000s", diff)
	}
	b.Delete(long.Key)
	commit(t, f, &b)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if report, err := Check(name, nil); err != nil || report.Records != len(want) || len(report.Damages) > 0 {
		t.Errorf("report %+v, %v", report, err)
	}
}

// TestLargeRecords: a batch does not copy a large value.
func TestLargeRecords(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "data")
	f, _ := open(t, name)
	var b Batch
	var want []Record
	for i, key := range []string{"a", "b", strings.Repeat("l", bolt.MaxKeySize+1)} {
		r := record(i)
		r.Key, r.Version = []byte(key), []byte("1:0:n")
		r.Value = bytes.Repeat([]byte{byte(i)}, Large)
		want = append(want, own(r))
		b.Put(r)
		r.Key[0], r.Version[0] = 'x', 'x'
	}
	if len(b.data) > 1000 {
		t.Errorf("the batch has copied %d bytes", len(b.data))
	}
	commit(t, f, &b)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "saved")
	if _, err := Salvage(name, saved); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{name, saved} {
		f, got := open(t, name)
		defer f.Close()
		if !slices.EqualFunc(got, want, equal) {
			t.Errorf("%s: %d records differ from %d that were written", filepath.Base(name), len(got), len(want))
		}
	}
}

// TestDamage changes and truncates files: either the damage is found, and the records returned are those
// written, or the change is harmless, and bbolt opens the file too.
func TestDamage(t *testing.T) {
	name, want := written(t, 400)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	byKey := make(map[string]Record)
	for _, r := range want {
		byKey[string(r.Key)] = r
	}
	found := 0
	for round := range 1500 {
		data := bytes.Clone(whole)
		at := rand.IntN(len(data))
		switch round % 4 {
		case 3: // in the header or the elements of a page
			at = min(at/os.Getpagesize()*os.Getpagesize()+rand.IntN(200), len(data)-1)
			data[at] ^= 1 << rand.IntN(8)
		case 0:
			data[at] ^= 1 << rand.IntN(8)
		case 1:
			data = data[:at]
		default:
			clear(data[at:min(len(data), at+1+rand.IntN(10_000))])
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var got []Record
		c, err := readFile(name, func(r Record) { got = append(got, own(r)) })
		for _, r := range got {
			if want := byKey[string(r.Key)]; !equal(want, r) {
				t.Fatalf("round %d, at %d: got %+v, want %+v", round, at, r, want)
			}
		}
		if _, ok := errors.AsType[*FormatError](err); ok || err == nil && len(c.Damages) > 0 {
			found++
			continue
		}
		if err != nil || len(got) != len(want) || c.Clock != 1_700_000_000_000 {
			t.Fatalf("round %d, at %d of %d: %d records, %v", round, at, len(whole), len(got), err)
		}
		f, again := open(t, name)
		if len(again) != len(got) {
			t.Fatalf("round %d: %d records, then %d", round, len(got), len(again))
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if found < 500 {
		t.Errorf("damage was found %d times only", found)
	}
}

// TestEmptyRoot: a file whose root page has lost its buckets is reported as damaged, and not treated as new.
func TestEmptyRoot(t *testing.T) {
	name, _ := written(t, 400)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := readMeta(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	count := int64(m.root)*m.pageSize + 10
	clear(data[count : count+2])
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(name, Options{}, func(Record) {}); !errors.Is(err, errNoBuckets) {
		t.Errorf("open: %v", err)
	}
}

// TestEveryByte changes each byte of a file: all records returned are as written.
func TestEveryByte(t *testing.T) {
	name, want := written(t, 40)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	byKey := make(map[string]Record)
	for _, r := range want {
		byKey[string(r.Key)] = r
	}
	for at := range data {
		flip := byte(1) << (at % 8)
		data[at] ^= flip
		// An error means that the file is not opened, so it is fine here.
		_, _ = readContents(bytes.NewReader(data), int64(len(data)), name, func(r Record) {
			if want, known := byKey[string(r.Key)]; !known || !equal(want, r) {
				t.Fatalf("byte %d: got %+v, want %+v", at, r, want)
			}
		})
		data[at] ^= flip
	}
}

// TestMetaPages: a file with one damaged meta page may lack its latest commit, and an empty file lacks all
// commits. Neither is opened, and the remaining records can be salvaged.
func TestMetaPages(t *testing.T) {
	name, want := written(t, 40)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for page := range 2 {
		data := bytes.Clone(whole)
		data[page*os.Getpagesize()+pageHeader+50] ^= 1 // in the transaction number
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(name, Options{}, func(Record) {})
		damage, ok := errors.AsType[*DamageError](err)
		if !ok || !errors.Is(err, errOneMeta) {
			t.Errorf("page %d: open: %v", page, err)
			continue
		}
		report, err := Salvage(name, fmt.Sprintf("%s.%d", name, page))
		if err != nil || report.Records != damage.Records || report.Records > len(want) {
			t.Errorf("page %d: %d keys are readable, salvaged %+v, %v", page, damage.Records, report, err)
		}
	}
	if err := os.Truncate(name, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(name, Options{}, func(Record) {}); !errors.Is(err, errEmpty) {
		t.Errorf("open an empty file: %v", err)
	}
	if report, err := Check(name, nil); err != nil || len(report.Damages) != 1 {
		t.Errorf("check an empty file: %+v, %v", report, err)
	}
}

// TestRemoved: a commit to a file that was removed or replaced is an error.
func TestRemoved(t *testing.T) {
	for what, change := range map[string]func(name string) error{
		"removed": os.Remove,
		"replaced": func(name string) error {
			return errors.Join(os.Rename(name, name+".old"), os.WriteFile(name, nil, 0o600))
		},
	} {
		name := filepath.Join(t.TempDir(), "store.db")
		f, _ := open(t, name)
		var b Batch
		b.Put(record(1))
		commit(t, f, &b)
		if err := change(name); err != nil {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			t.Skipf("this system keeps open files in place: %v", err)
		}
		err := f.Commit(&b)
		if _, ok := errors.AsType[*RemovedError](err); !ok {
			t.Errorf("%s: commit: %v", what, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestDamageError(t *testing.T) {
	name, want := written(t, 400)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[bytes.LastIndex(data, want[123].Version)] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(name, Options{}, func(Record) {})
	damage, ok := errors.AsType[*DamageError](err)
	if !ok || damage.Records != 399 || !errors.Is(err, errChecksum) || string(damage.Damages[0].Key) != "key/00123" {
		t.Fatalf("open: %v", err)
	}
	to := name + ".new"
	report, err := Salvage(name, to)
	if err != nil || report.Records != 399 || len(report.Damages) != 1 {
		t.Fatalf("salvage: %+v, %v", report, err)
	}
	f, got := open(t, to)
	defer f.Close()
	if diff := compare(slices.Delete(want, 123, 124), got); diff != "" || f.Clock() != 1_700_000_000_000 {
		t.Errorf("salvaged (-want +got):\n%s", diff)
	}
	if _, err := Salvage(name, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("salvage to a file that exists: %v", err)
	}
}

func TestRefused(t *testing.T) {
	write := func(bucket, key, value string) string {
		name := filepath.Join(t.TempDir(), "store.db")
		db, err := bolt.Open(name, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		err = db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte(bucket))
			if err != nil {
				return err
			}
			return b.Put([]byte(key), []byte(value))
		})
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct{ name, got string }{
		{write(bucketMeta, keyFormat, "2"), "2"},
		{write("somebody", "else", "s"), ""},
	} {
		_, err := Open(c.name, Options{}, func(Record) {})
		if refused, ok := errors.AsType[*FormatError](err); !ok || refused.Got != c.got {
			t.Errorf("open: %v, want the format %q to be refused", err, c.got)
		}
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no data file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(text, Options{}, func(Record) {}); !errors.Is(err, errNoFile) {
		t.Errorf("open: %v", err)
	}
	if _, err := Open(t.TempDir(), Options{}, func(Record) {}); err == nil {
		t.Error("a directory was opened")
	}
}

// FuzzRecord: a written record is read back unchanged, and no other bytes are accepted.
func FuzzRecord(f *testing.F) {
	f.Add([]byte("key"), []byte("value"), []byte("1:0:s"), []byte("2:0:l"), int64(7), true, false, 9, byte(1))
	f.Fuzz(func(t *testing.T, key, value, version, fence []byte, expires int64, persist, long bool, at int, flip byte) {
		want := Record{Key: key, Value: value, Version: version, Fence: fence, Expires: expires, Persist: persist}
		data := appendRecord(nil, want, long)
		under := key
		if long {
			under = filedUnder(key)
		}
		got, err := parseRecord(under, data, long)
		if err != nil || !equal(want, got) {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
		if flip == 0 {
			return
		}
		data[uint(at)%uint(len(data))] ^= flip // at most 8 adjacent bits: CRC-32 detects all such changes
		if got, err := parseRecord(under, data, long); err == nil {
			t.Fatalf("a changed record was taken: %+v", got)
		}
	})
}

// FuzzPages: any file is read to its end, and each of its records at most once.
func FuzzPages(f *testing.F) {
	name := filepath.Join(f.TempDir(), "store.db")
	file, err := Open(name, Options{}, func(Record) {})
	if err != nil {
		f.Fatal(err)
	}
	var b Batch
	for i := range 40 {
		b.Put(record(i))
	}
	if err := errors.Join(file.Commit(&b), file.Close()); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := readMeta(bytes.NewReader(data))
		if err != nil {
			return
		}
		var last string
		seen := make(map[string]bool)
		p := pages{f: bytes.NewReader(data), meta: m, damage: func(d Damage) { _ = d.Error() }}
		p.record = func(bucket string, _ uint64, key, _ []byte) {
			if id := bucket + "/" + string(key); seen[id] {
				t.Fatalf("%q comes twice, after %q", id, last)
			} else {
				seen[id], last = true, id
			}
		}
		p.walk(int64(len(data)))
	})
}
