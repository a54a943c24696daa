package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
)

// BenchmarkScrape exposes 2,000 checks of keys.
func BenchmarkScrape(b *testing.B) {
	var specs []*spec
	for i := range 2000 {
		s := &spec{kind: aKey, target: fmt.Sprint("key/", i)}
		for _, c := range conditions() {
			if text := map[string]string{"max-age": "1h", "max": "5000", "value": ""}; c.name == "value" || text[c.name] != "" {
				if err := s.set(c, text[c.name]); err != nil {
					b.Fatal(err)
				}
			}
		}
		specs = append(specs, s)
	}
	v := newView("lab", nil, specs, time.Minute, false, true)
	v.broker.err = nil
	now := time.Now()
	for _, s := range specs {
		v.record(v.readers[s.target], []byte("4000"), true, client.Version{Wall: now.UnixMilli(), Node: "n"}, now)
	}
	for b.Loop() {
		expose([]*view{v}, "1", true, now)
	}
}
