package emulator_test

import (
	"bufio"
	"io"
	"testing"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/emulator"
)

// BenchmarkPipeline has 64 GETs in flight on one connection. The client writes the
// same bytes over and over and only counts what comes back, so that the time is the
// emulator's.
func BenchmarkPipeline(b *testing.B) {
	s, err := emulator.New(emulator.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c := dial(b, s, "c")
	c.hello()
	c.subscribe(c.responseTopic(), 0)
	if _, err := s.Set("k", "v"); err != nil {
		b.Fatal(err)
	}
	var one requestBytes
	p := c.publication("GET", "k")
	if _, err := p.WriteTo(&one); err != nil {
		b.Fatal(err)
	}
	in := bufio.NewReaderSize(c.conn, 1<<16)
	b.ResetTimer()
	for sent, got := 0, 0; got < b.N; {
		var out []byte
		for ; sent < b.N && sent-got < 64; sent++ {
			out = append(out, one.data...)
		}
		if _, err := c.conn.Write(out); err != nil {
			b.Fatal(err)
		}
		for first := true; got < sent && (first || in.Buffered() > 0); first = false {
			kind, err := skip(in)
			if err != nil {
				b.Fatal(err)
			}
			if kind == packets.PUBLISH {
				got++
			}
		}
	}
}

type requestBytes struct{ data []byte }

func (b *requestBytes) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	return len(p), nil
}

// skip reads one packet and tells its type.
func skip(in *bufio.Reader) (byte, error) {
	kind, err := in.ReadByte()
	if err != nil {
		return 0, err
	}
	size, shift := 0, 0
	for {
		c, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		size |= int(c&0x7f) << shift
		shift += 7
		if c < 0x80 {
			break
		}
	}
	_, err = io.CopyN(io.Discard, in, int64(size))
	return kind >> 4, err
}
