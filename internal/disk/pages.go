package disk

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// bbolt trusts its file. In a damaged file, it may follow page numbers past the end or in a cycle,
// and the process crashes or hangs. The caller cannot prevent this: Tx.Check walks the pages in
// bbolt's goroutines, where the caller's recover and debug.SetPanicOnFault have no effect, and a
// Cursor never leaves a cycle. The code below therefore checks all pages before bbolt uses them. It
// continues after a damaged page, so that the records in other pages are found.
//
// A bbolt file consists of pages of one size. The first two are meta pages, which bbolt writes in
// turn; the one with the greater transaction id is current. The current meta page has the number of
// the root page of a tree. A leaf page holds keys and values; a branch page holds the first key of
// each page below it. Each value in the root tree is a bucket: the number of another tree's root page
// or, for a small bucket, one leaf page inside the value.

const (
	// Sizes of structures and their fields, in bytes. The fields of a meta page are: magic 4, version 4,
	// page size 4, flags 4, root 8, sequence 8, freelist 8, pages 8, transaction 8, checksum 8.
	pageHeader  = 16 // id 8, flags 2, count 2, overflow 4
	elementSize = 16 // in a branch page: pos 4, ksize 4, page 8; in a leaf page: flags 4, pos 4, ksize 4, vsize 4
	bucketSize  = 16 // root 8, sequence 8
	metaSize    = 64

	branchPage = 0x01
	leafPage   = 0x02
	metaPage   = 0x04

	bucketFlag = 0x01

	boltMagic   = 0xED0CDAED
	boltVersion = 2

	minPageSize, maxPageSize = 1 << 10, 1 << 24
)

// order is the machine's byte order, which bbolt uses in its files.
var order = binary.NativeEndian

var (
	errNoFile    = errors.New("neither of its meta pages is valid")
	errEmpty     = errors.New("it is empty, and sscli never leaves a file empty")
	errNoBuckets = errors.New("it has no buckets, and sscli never leaves a file without them")
	errOneMeta   = errors.New("one of its two meta pages is not valid: the latest commit may be lost")
	errLayout    = errors.New("its layout is unknown")
	errElement   = errors.New("its elements are misplaced")
	errOrder     = errors.New("the keys are not in order")
)

type meta struct {
	pageSize    int64
	root        uint64
	pages       uint64 // number of pages in the file
	transaction uint64
}

// readMeta returns the valid meta page with the greater transaction id. If only one is valid, it
// returns that page and errOneMeta; bbolt would use the page silently.
func readMeta(f io.ReaderAt) (meta, error) {
	first, err := readMetaAt(f, 0)
	if err == nil {
		second, err := readMetaAt(f, first.pageSize)
		switch {
		case err != nil:
			return first, errOneMeta
		case second.transaction > first.transaction:
			return second, nil
		}
		return first, nil
	}
	for at := int64(minPageSize); at <= maxPageSize; at *= 2 { // the page size is unknown: try all
		second, e := readMetaAt(f, at)
		if e == nil {
			return second, errOneMeta
		}
		if errors.Is(e, errLayout) {
			err = e
		}
	}
	return meta{}, err
}

func readMetaAt(f io.ReaderAt, at int64) (meta, error) {
	var page [pageHeader + metaSize]byte
	if _, err := f.ReadAt(page[:], at); err != nil {
		return meta{}, errNoFile
	}
	m := page[pageHeader:]
	if order.Uint16(page[8:])&metaPage == 0 || order.Uint32(m) != boltMagic {
		return meta{}, errNoFile
	}
	sum := fnv.New64a()
	sum.Write(m[:metaSize-8])
	if sum.Sum64() != order.Uint64(m[metaSize-8:]) {
		return meta{}, errNoFile
	}
	if order.Uint32(m[4:]) != boltVersion {
		return meta{}, errLayout
	}
	found := meta{
		pageSize: int64(order.Uint32(m[8:])), root: order.Uint64(m[16:]),
		pages: order.Uint64(m[40:]), transaction: order.Uint64(m[48:]),
	}
	if found.pageSize < minPageSize || found.pageSize > maxPageSize || found.pageSize&(found.pageSize-1) != 0 {
		return meta{}, errNoFile
	}
	return found, nil
}

// pages reads the tree of a file.
type pages struct {
	f       io.ReaderAt
	meta    meta
	seen    []bool          // by page number: whether the page has been read
	buckets map[string]bool // names of the buckets found
	damage  func(Damage)
	record  func(bucket string, page uint64, key, value []byte)
}

// walk calls p.record for each key in the buckets, in the order of the keys, and p.damage for each
// page or element that cannot be read. The slices passed to p.record stay valid.
// size is the size of the file, in bytes.
func (p *pages) walk(size int64) {
	p.seen = make([]bool, min(p.meta.pages, uint64(size/p.meta.pageSize)))
	p.buckets = make(map[string]bool)
	if uint64(len(p.seen)) < p.meta.pages {
		p.damage(Damage{Err: fmt.Errorf("the file is truncated: it has %d bytes of %d", size, p.meta.pages*uint64(p.meta.pageSize))})
	}
	p.tree(p.meta.root, nil, nil, func(page uint64, e element) {
		if e.flags != bucketFlag || len(e.value) < bucketSize {
			p.damage(Damage{Page: page, Err: fmt.Errorf("%.64q is not a bucket", e.key)})
			return
		}
		p.bucket(string(e.key), page, e.value)
	})
}

func (p *pages) bucket(name string, page uint64, value []byte) {
	p.buckets[name] = true
	record := func(page uint64, e element) {
		if e.flags != 0 {
			p.damage(Damage{Page: page, Err: fmt.Errorf("%.64q is not a record", e.key)})
			return
		}
		p.record(name, page, e.key, e.value)
	}
	if root := order.Uint64(value); root != 0 {
		p.tree(root, nil, nil, record)
		return
	}
	branch, elements, err := parsePage(value[bucketSize:], nil, nil)
	if err != nil || branch {
		p.damage(Damage{Page: page, Err: fmt.Errorf("in the bucket %.64q: %w", name, cmp.Or(err, errElement))})
		return
	}
	for _, e := range elements {
		record(page, e)
	}
}

// tree calls leaf for each element of the leaf pages at and below page id. All keys must be at or
// after low and, unless high is nil, before high.
func (p *pages) tree(id uint64, low, high []byte, leaf func(page uint64, e element)) {
	buf, err := p.page(id)
	branch, elements := false, []element(nil)
	if err == nil {
		branch, elements, err = parsePage(buf, low, high)
	}
	if err != nil {
		p.damage(Damage{Page: id, Err: err})
		return
	}
	for i, e := range elements {
		if !branch {
			leaf(id, e)
			continue
		}
		next := high
		if i+1 < len(elements) {
			next = elements[i+1].key
		}
		p.tree(e.child, e.key, next, leaf)
	}
}

func (p *pages) page(id uint64) ([]byte, error) {
	if err := p.see(id); err != nil {
		return nil, err
	}
	size := p.meta.pageSize
	buf := make([]byte, size)
	if _, err := p.f.ReadAt(buf, int64(id)*size); err != nil {
		return nil, err
	}
	if got := order.Uint64(buf); got != id {
		return nil, fmt.Errorf("it is labelled page %d", got)
	}
	more := uint64(order.Uint32(buf[12:]))
	if more == 0 {
		return buf, nil
	}
	if more >= uint64(len(p.seen))-id {
		return nil, errors.New("it continues after the end of the file")
	}
	for n := range more {
		if err := p.see(id + 1 + n); err != nil {
			return nil, err
		}
	}
	buf = make([]byte, (1+int64(more))*size)
	_, err := p.f.ReadAt(buf, int64(id)*size)
	return buf, err
}

// see marks a page as used. It returns an error if the page is out of range or already used.
func (p *pages) see(id uint64) error {
	if id < 2 || id >= uint64(len(p.seen)) {
		return errors.New("it is not in the file")
	}
	if p.seen[id] {
		return errors.New("it is used twice")
	}
	p.seen[id] = true
	return nil
}

// An element is one entry of a branch or leaf page.
type element struct {
	key, value []byte
	flags      uint32 // leaf page only
	child      uint64 // branch page only: the number of the page below
}

// parsePage returns the elements of a page and whether it is a branch page. It returns an error
// unless the keys and values follow the element headers without gaps, and the keys are in order,
// at or after low and, unless high is nil, before high.
func parsePage(page, low, high []byte) (branch bool, elements []element, err error) {
	if len(page) < pageHeader {
		return false, nil, errElement
	}
	flags, count := order.Uint16(page[8:]), int(order.Uint16(page[10:]))
	branch = flags == branchPage
	if !branch && flags != leafPage || branch && count == 0 {
		return false, nil, fmt.Errorf("it is not a page of a tree (type %#x)", flags)
	}
	next := pageHeader + count*elementSize
	if next > len(page) {
		return false, nil, errElement
	}
	elements = make([]element, count)
	for i := range elements {
		e, at := &elements[i], pageHeader+i*elementSize
		raw := page[at:]
		var begin, key, value int
		if branch {
			begin, key, e.child = at+int(order.Uint32(raw)), int(order.Uint32(raw[4:])), order.Uint64(raw[8:])
		} else {
			e.flags = order.Uint32(raw)
			begin, key, value = at+int(order.Uint32(raw[4:])), int(order.Uint32(raw[8:])), int(order.Uint32(raw[12:]))
		}
		if begin != next || key <= 0 || key > len(page)-begin || value < 0 || value > len(page)-begin-key {
			return false, nil, errElement
		}
		next += key + value
		e.key, e.value = page[begin:begin+key:begin+key], page[begin+key:next:next]
		if c := bytes.Compare(e.key, low); c < 0 || c == 0 && i > 0 || high != nil && bytes.Compare(e.key, high) >= 0 {
			return false, nil, errOrder
		}
		low = e.key
	}
	return branch, elements, nil
}
