package broker

import (
	"bytes"
	"testing"
)

// FuzzFrames: frames mean the same in whatever parts they arrive, and decoding never yields more bytes than there were.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		"\x82\x82\x01\x02\x03\x04\xc1\x02", "\x02\x81\x00\x00\x00\x00\xc0\x89\x80\x00\x00\x00\x00\x80\x81\x00\x00\x00\x00\x00",
		"\x82\xfe\x00\x02\x00\x00\x00\x00\xc0\x00", "\x82\xff\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\xc0\x00", "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\xc0\x00",
		"\x88\x82\x00\x00\x00\x00\x03\xe8", "\x88\x80\x00\x00\x00\x00", "\x82\x00", "\x81\x80\x00\x00\x00\x00", "\x8a\x84\x01\x01\x01\x01pong",
	} {
		f.Add([]byte(seed), uint8(1))
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, all []byte, size uint8) {
		var whole, parts frames
		once := bytes.Clone(all)
		n, want := whole.decode(once)
		if n > len(all) {
			t.Fatalf("%d bytes of %d", n, len(all))
		}
		var got []byte
		var err error
		for rest := bytes.Clone(all); len(rest) > 0 && err == nil; {
			part := rest[:min(len(rest), 1+int(size))]
			rest = rest[len(part):]
			var k int
			k, err = parts.decode(part)
			got = append(got, part[:k]...)
		}
		if !bytes.Equal(got, once[:n]) || (err == nil) != (want == nil) || err != nil && err.Error() != want.Error() {
			t.Errorf("%q and %v in parts, %q and %v at once", got, err, once[:n], want)
		}
		if !bytes.Equal(parts.pong, whole.pong) {
			t.Errorf("pong %q in parts, %q at once", parts.pong, whole.pong)
		}
	})
}
