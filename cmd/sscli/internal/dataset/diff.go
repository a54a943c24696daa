package dataset

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
)

// A Change is a difference between the old and the new data set. For an added record, Old is the zero
// Record; for a removed record, New is the zero Record.
type Change struct {
	Old, New Record
}

// A Diff compares the records of an old value with new records, which the caller passes to [Diff.Add]
// one by one:
//
//	d, err := dataset.NewDiff(old, on)
//	for r, err := range new {
//		change, differs := d.Add(r) // added, changed or equal
//	}
//	for change := range d.Removed() { … }
//
// If several records have the same value in the match field, the first new record is compared with the
// first old record, the second with the second, and so on. Records without a comparable match field,
// and all records if there is no match field, are compared as a whole. In a Change, Old.Line and
// New.Line are the line numbers in the old value and in the new one. Applying the changes to the
// old records gives the new records, in their order unless [Diff.Reordered] returns true.
type Diff struct {
	old   []byte
	on    Path
	hash  hasher
	lines []oldLine // ordered by id and offset
	last  int       // greatest offset of an old record that was paired with a new one
	moved bool      // the paired records are in another order than in the old value
}

// An oldLine is a record of the old value.
type oldLine struct {
	id     identity
	offset int
	line   int32
	used   int32 // number of lines with this id that are paired; only set in the first of them
}

// NewDiff parses the old value, and keeps it. It returns an error if old is not a data set.
func NewDiff(old []byte, on Path) (*Diff, error) {
	d := &Diff{old: old, on: on, hash: newHasher(), last: -1}
	d.lines = make([]oldLine, 0, bytes.Count(old, []byte("\n"))+1)
	for r, err := range Read(bytes.NewReader(old), Options{Stored: true}) {
		if err != nil {
			return nil, err
		}
		id, _, _ := d.hash.of(on, r)
		d.lines = append(d.lines, oldLine{id: id, line: int32(r.Line)})
	}
	at := 0
	for i := range d.lines { // a stored value has a record on each line
		d.lines[i].offset = at
		at += bytes.IndexByte(old[at:], '\n') + 1
	}
	slices.SortStableFunc(d.lines, func(a, b oldLine) int {
		return cmp.Or(cmp.Compare(a.id[0], b.id[0]), cmp.Compare(a.id[1], b.id[1]))
	})
	return d, nil
}

// Add pairs r, the next new record, with an old record and compares the two. If no old record is left
// to pair with r, c is an addition. ok is false if the two records are equal.
func (d *Diff) Add(r Record) (c Change, ok bool) {
	id, _, _ := d.hash.of(d.on, r)
	first, found := slices.BinarySearchFunc(d.lines, id, func(l oldLine, id identity) int {
		return cmp.Or(cmp.Compare(l.id[0], id[0]), cmp.Compare(l.id[1], id[1]))
	})
	if !found {
		return Change{New: r}, true
	}
	group := &d.lines[first]
	next := first + int(group.used)
	if next >= len(d.lines) || d.lines[next].id != id {
		return Change{New: r}, true
	}
	group.used++
	l := d.lines[next]
	d.moved = d.moved || l.offset < d.last
	d.last = max(d.last, l.offset)
	old := d.record(l)
	return Change{Old: old, New: r}, !bytes.Equal(old.JSON, r.JSON)
}

func (d *Diff) record(l oldLine) Record {
	line, _, _ := bytes.Cut(d.old[l.offset:], []byte("\n"))
	text, _ := ParseLine(nil, line) // cannot fail: NewDiff has parsed it
	return Record{Line: int(l.line), JSON: text}
}

// Removed returns the old records that no new record was paired with, in their order. Call it after
// the last Add.
func (d *Diff) Removed() iter.Seq[Change] {
	var left []oldLine
	for i := 0; i < len(d.lines); {
		id, used := d.lines[i].id, int(d.lines[i].used)
		for n := 0; i < len(d.lines) && d.lines[i].id == id; i, n = i+1, n+1 {
			if n >= used {
				left = append(left, d.lines[i])
			}
		}
	}
	slices.SortFunc(left, func(a, b oldLine) int { return cmp.Compare(a.offset, b.offset) })
	return func(yield func(Change) bool) {
		for _, l := range left {
			if !yield(Change{Old: d.record(l)}) {
				return
			}
		}
	}
}

// Reordered reports whether the paired records are in another order than in the old value.
func (d *Diff) Reordered() bool { return d.moved }
