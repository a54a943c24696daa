package emulator_test

import (
	"bufio"
	"bytes"
	"fmt"
	"testing"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/emulator"
)

// BenchmarkPipeline keeps a number of requests in flight on one connection. The client writes the same bytes
// again and again and only counts the replies, so that the emulator takes most of the time.
func BenchmarkPipeline(b *testing.B) {
	for _, words := range [][]string{{"GET", "k"}, {"SET", "k", "value"}} {
		for _, depth := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("%s/%d", words[0], depth), func(b *testing.B) { pipeline(b, depth, words) })
		}
	}
}

func pipeline(b *testing.B, depth int, words []string) {
	s := emulator.Start(b)
	c := dial(b, s, "c")
	c.Hello()
	c.Subscribe(c.responseTopic(), 0)
	if _, err := s.Set("k", "v"); err != nil {
		b.Fatal(err)
	}
	var one bytes.Buffer
	if _, err := c.publication(words...).WriteTo(&one); err != nil {
		b.Fatal(err)
	}
	many := bytes.Repeat(one.Bytes(), depth)
	in := bufio.NewReaderSize(c.Conn, 1<<16)
	b.ReportAllocs()
	b.ResetTimer()
	for sent, got := 0, 0; got < b.N; {
		if n := min(b.N-sent, depth-(sent-got)); n > 0 {
			if _, err := c.Conn.Write(many[:n*one.Len()]); err != nil {
				b.Fatal(err)
			}
			sent += n
		}
		for first := true; got < sent && (first || in.Buffered() > 0); first = false {
			kind, err := skip(in)
			if err != nil {
				b.Fatal(err)
			}
			if kind == packets.PUBLISH {
				got++
			} else {
				first = true
			}
		}
	}
}

// skip reads one packet and returns its type.
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
	_, err = in.Discard(size)
	return kind >> 4, err
}
