package wire_test

import (
	"bytes"
	"testing"

	"github.com/sscli/sscli/internal/wire"
)

func BenchmarkAppendRequest(b *testing.B) {
	value := bytes.Repeat([]byte("v"), 279)
	words := [][]byte{[]byte("SET"), []byte("SETKEY2"), value, []byte("NX"), []byte("PX"), []byte("10000")}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = wire.AppendRequest(dst[:0], words...)
	}
	b.SetBytes(int64(len(dst)))
}

func BenchmarkParseReply(b *testing.B) {
	payload := []byte("$279\r\n" + string(bytes.Repeat([]byte("v"), 279)) + "\r\n")
	if len(payload) != 287 {
		b.Fatalf("the reply has %d bytes", len(payload))
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(payload)))
	for b.Loop() {
		if _, err := wire.ParseReply(payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseVersion(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.ParseVersion("001696374425000:00001:StateStore"); err != nil {
			b.Fatal(err)
		}
	}
}
