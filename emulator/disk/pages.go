package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// bbolt takes a damaged file at its word, and panics or is killed (SIGBUS) where that does
// not hold. So the pages are read here first, without bbolt: all that it will follow is
// checked, and damage to one page does not hide what the others hold.
//
// A file is pages of one size. The first two are meta pages; the valid one with the greater
// transaction counts. It names the root page of a tree of pages: in a leaf page are keys and
// values, in a branch page the first key of each page below it. A value in the root tree may
// be a bucket: a tree of its own, or if it is small one leaf page in the value itself.

const (
	pageHeader  = 16 // id 8, flags 2, count 2, overflow 4
	elementSize = 16 // of a branch page: pos 4, ksize 4, page 8; of a leaf page: flags 4, pos 4, ksize 4, vsize 4
	bucketSize  = 16 // root 8, sequence 8
	metaSize    = 64

	branchPage = 0x01
	leafPage   = 0x02
	metaPage   = 0x04

	bucketFlag = 0x01

	boltMagic   = 0xED0CDAED
	boltVersion = 2

	leastPage, mostPage = 1 << 10, 1 << 24
)

// order is the machine's: bbolt's files are not portable.
var order = binary.NativeEndian

var (
	errNoFile = errors.New("neither of its meta pages is valid")
	errLayout = errors.New("its layout is not known")
)

// meta is a meta page.
type meta struct {
	pageSize    int64
	root        uint64
	pages       uint64 // that the file has
	transaction uint64
}

// readMeta finds the valid meta page.
func readMeta(f io.ReaderAt, size int64) (meta, error) {
	var found []meta
	var buf [pageHeader + metaSize]byte
	read := func(at int64) error {
		if at+int64(len(buf)) > size {
			return errNoFile
		}
		if _, err := f.ReadAt(buf[:], at); err != nil {
			return err
		}
		m, err := parseMeta(buf[:])
		if err == nil {
			found = append(found, m)
		}
		return err
	}
	err := read(0)
	if err == nil {
		err = read(found[0].pageSize)
	} else { // the size of a page is not known
		for at := int64(leastPage); at <= mostPage && len(found) == 0; at *= 2 {
			if e := read(at); errors.Is(e, errLayout) {
				err = e
			}
		}
	}
	switch {
	case len(found) == 0 && errors.Is(err, errLayout):
		return meta{}, err
	case len(found) == 0:
		return meta{}, errNoFile
	case len(found) == 2 && found[1].transaction > found[0].transaction:
		return found[1], nil
	default:
		return found[0], nil
	}
}

func parseMeta(page []byte) (meta, error) {
	flags, m := order.Uint16(page[8:]), page[pageHeader:]
	if flags&metaPage == 0 || order.Uint32(m) != boltMagic {
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
	if found.pageSize < leastPage || found.pageSize > mostPage || found.pageSize&(found.pageSize-1) != 0 {
		return meta{}, errNoFile
	}
	return found, nil
}

// A Damage is something in a file that cannot be right.
type Damage struct {
	Page uint64 // 0: none in particular
	Key  []byte // of the record, if it is one; "": the page, with all that is in it or below it
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

// pages reads the tree of a file.
type pages struct {
	f      io.ReaderAt
	meta   meta
	there  uint64   // pages that are in the file
	seen   []uint64 // a bit for each page
	free   [][]byte // memory for pages
	damage func(Damage)
	named  func(bucket string) // before what is in the bucket
	record func(bucket string, page uint64, key, value []byte)
}

// walk calls record for what the buckets hold, in the order of the keys, and damage for
// what cannot be read. What record is given is good during the call.
func (p *pages) walk(size int64) {
	p.there = min(p.meta.pages, uint64(size/p.meta.pageSize))
	p.seen = make([]uint64, p.there/64+1)
	if p.there < p.meta.pages {
		p.damage(Damage{Err: fmt.Errorf("the file is cut off: it has %d bytes of %d", size, p.meta.pages*uint64(p.meta.pageSize))})
	}
	p.tree(p.meta.root, nil, nil, func(page uint64, flags uint32, key, value []byte) {
		if flags != bucketFlag {
			p.damage(Damage{Page: page, Err: fmt.Errorf("%.64q is no bucket", key)})
			return
		}
		p.bucket(string(key), page, value)
	})
}

func (p *pages) bucket(name string, page uint64, value []byte) {
	if len(value) < bucketSize {
		p.damage(Damage{Page: page, Err: fmt.Errorf("the bucket %.64q is cut off", name)})
		return
	}
	p.named(name)
	leaf := func(page uint64, flags uint32, key, value []byte) {
		if flags != 0 {
			p.damage(Damage{Page: page, Err: fmt.Errorf("%.64q is no record", key)})
			return
		}
		p.record(name, page, key, value)
	}
	if root := order.Uint64(value); root != 0 {
		p.tree(root, nil, nil, leaf)
		return
	}
	if err := elements(value[bucketSize:], nil, nil, page, leaf, nil); err != nil {
		p.damage(Damage{Page: page, Err: fmt.Errorf("in the bucket %.64q: %w", name, err)})
	}
}

type (
	leafFunc   func(page uint64, flags uint32, key, value []byte)
	branchFunc func(key, next []byte, page uint64)
)

// tree reads a page and those below it. Their keys are not before low, and before high if
// that is not nil.
func (p *pages) tree(id uint64, low, high []byte, leaf leafFunc) {
	buf, err := p.page(id)
	if err == nil {
		err = elements(buf, low, high, id, leaf, func(key, next []byte, page uint64) {
			if next == nil {
				next = high
			}
			p.tree(page, key, next, leaf)
		})
		p.free = append(p.free, buf)
	}
	if err != nil {
		p.damage(Damage{Page: id, Err: err})
	}
}

// page reads a page, with those that continue it.
func (p *pages) page(id uint64) ([]byte, error) {
	if err := p.see(id); err != nil {
		return nil, err
	}
	size := int(p.meta.pageSize)
	var buf []byte
	if last := len(p.free) - 1; last >= 0 {
		buf, p.free = p.free[last], p.free[:last]
	}
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if _, err := p.f.ReadAt(buf, int64(id)*p.meta.pageSize); err != nil {
		return nil, err
	}
	if order.Uint64(buf) != id {
		return nil, fmt.Errorf("it says that it is page %d", order.Uint64(buf))
	}
	more := uint64(order.Uint32(buf[12:]))
	if more == 0 {
		return buf, nil
	}
	if more >= p.there-id {
		return nil, errors.New("it goes on after the end of the file")
	}
	for n := range more {
		if err := p.see(id + 1 + n); err != nil {
			return nil, err
		}
	}
	whole := make([]byte, (1+int(more))*size)
	copy(whole, buf)
	if _, err := p.f.ReadAt(whole[size:], int64(id+1)*p.meta.pageSize); err != nil {
		return nil, err
	}
	return whole, nil
}

// see notes that a page is in use.
func (p *pages) see(id uint64) error {
	if id < 2 || id >= p.there {
		return errors.New("it is not in the file")
	}
	if p.seen[id/64]&(1<<(id%64)) != 0 {
		return errors.New("it is used twice")
	}
	p.seen[id/64] |= 1 << (id % 64)
	return nil
}

var (
	errElement = errors.New("its elements are not where they should be")
	errOrder   = errors.New("the keys are not in order")
)

// elements reads what is in a page. branch is nil where there can be no pages below.
func elements(page []byte, low, high []byte, id uint64, leaf leafFunc, branch branchFunc) error {
	if len(page) < pageHeader {
		return errElement
	}
	flags, count := order.Uint16(page[8:]), int(order.Uint16(page[10:]))
	if flags != leafPage && (flags != branchPage || branch == nil) || flags == branchPage && count == 0 {
		return fmt.Errorf("it is no page of a tree (type %#x)", flags)
	}
	if pageHeader+count*elementSize > len(page) {
		return errElement
	}
	// element returns where the key of an element begins, its length, and the value's length.
	element := func(i int) (begin, key, value int) {
		at := pageHeader + i*elementSize
		e := page[at:]
		if flags == branchPage {
			return at + int(order.Uint32(e)), int(order.Uint32(e[4:])), 0
		}
		return at + int(order.Uint32(e[4:])), int(order.Uint32(e[8:])), int(order.Uint32(e[12:]))
	}
	// All elements are looked at before any is handed over, so that nothing comes from a page
	// that is wrong. Their keys and values follow each other, right after the elements.
	last, next := low, pageHeader+count*elementSize
	for i := range count {
		begin, key, value := element(i)
		if begin != next || key == 0 || key > len(page)-begin || value > len(page)-begin-key {
			return errElement
		}
		next += key + value
		k := page[begin : begin+key]
		switch {
		case i > 0 && bytes.Compare(k, last) <= 0, i == 0 && bytes.Compare(k, last) < 0, high != nil && bytes.Compare(k, high) >= 0:
			return errOrder
		}
		last = k
	}
	for i := range count {
		e := page[pageHeader+i*elementSize:]
		begin, key, value := element(i)
		k, v := page[begin:begin+key:begin+key], page[begin+key:begin+key+value:begin+key+value]
		if flags == leafPage {
			leaf(id, order.Uint32(e), k, v)
			continue
		}
		var after []byte
		if i+1 < count {
			begin, key, _ := element(i + 1)
			after = page[begin : begin+key]
		}
		branch(k, after, order.Uint64(e[8:]))
	}
	return nil
}
