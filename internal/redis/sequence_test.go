package redis

import (
	"bytes"
	"testing"
)

// TestSequence: what waits for a client that does not read is copied once, in bounded parts, and stays in order.
func TestSequence(t *testing.T) {
	var q sequence
	var want []byte
	for i := range 2000 {
		message := bytes.Repeat([]byte{byte(i)}, 1+i*7%15_000)
		q.add(message, nil)
		want = append(want, message...)
	}
	if q.len() != len(want) || q.cap() > len(want)*5/4 {
		t.Errorf("%d bytes in a memory of %d, want %d bytes", q.len(), q.cap(), len(want))
	}
	var got []byte
	for len(q.parts) > 0 {
		part := q.next()
		if len(part) < maxPart || cap(part) > 4*maxPart {
			t.Errorf("a part of %d bytes in a memory of %d", len(part), cap(part))
		}
		got = append(got, part...)
	}
	if got = append(got, q.last...); !bytes.Equal(got, want) {
		t.Error("the bytes differ")
	}
}
