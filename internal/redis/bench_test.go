package redis_test

import (
	"fmt"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// BenchmarkPipeline measures a request in pipelines of 64.
func BenchmarkPipeline(b *testing.B) {
	const pipeline = 64
	for _, verb := range []string{"SET", "GET"} {
		b.Run(verb, func(b *testing.B) {
			_, c := start(b, emulator.Options{})
			var requests [][]byte
			for i := range 1000 {
				var batch []byte
				for j := range pipeline {
					args := []string{verb, fmt.Sprintf("key:%012d", (i*pipeline+j)*7919%100_000)}
					if verb == "SET" {
						args = append(args, "xxx")
					}
					batch = append(batch, redistest.Request(args...)...)
				}
				requests = append(requests, batch)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%pipeline > 0 {
					continue
				}
				if _, err := c.Conn.Write(requests[i/pipeline%len(requests)]); err != nil {
					b.Fatal(err)
				}
				for range pipeline {
					line, err := c.Reader.ReadSlice('\n')
					if err != nil {
						b.Fatal(err)
					}
					if line[0] == '$' && line[1] != '-' {
						if _, err := c.Reader.ReadSlice('\n'); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
		})
	}
}
