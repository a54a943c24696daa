package store_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/store"
	"github.com/sscli/sscli/internal/wire"
)

// stampNow returns the `__ts` of a client with a correct clock.
func stampNow() []byte {
	return []byte(wire.Version{Wall: time.Now().UnixMilli(), Node: "bench"}.String())
}

// BenchmarkDo measures one request, with its notifications, on a store of 10,000 keys.
func BenchmarkDo(b *testing.B) {
	const keys = 10_000
	value := strings.Repeat("v", 100)
	key := func(i int) string { return fmt.Sprintf("key:%09d", i*7919%keys) }
	for _, bench := range []struct {
		name    string
		watched bool
		words   func(i int) []string
	}{
		{"GET", false, func(i int) []string { return []string{"GET", key(i)} }},
		{"GET/missing", false, func(i int) []string { return []string{"GET", "no" + key(i)} }},
		{"SET", false, func(i int) []string { return []string{"SET", key(i), value} }},
		{"SET/PX", false, func(i int) []string { return []string{"SET", key(i), value, "PX", "600000"} }},
		{"SET/watched", true, func(i int) []string { return []string{"SET", key(i), value} }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := store.New(store.Options{})
			requests := make([]store.Request, keys)
			for i := range keys {
				s.Apply(store.Write{Cause: "set", Key: []byte(key(i)), Value: []byte(value)})
				if bench.watched {
					s.Do(&store.Request{ClientID: "watcher", Payload: wire.AppendRequest(nil, "KEYNOTIFY", key(i))}, nil)
				}
				requests[i] = store.Request{ClientID: "bench", Payload: wire.AppendRequest(nil, bench.words(i)...), Timestamp: stampNow()}
			}
			var dst []byte
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				dst = s.Do(&requests[i%keys], dst[:0]).Payload
				s.TakeNotifications()
				i++
			}
		})
	}
}

// BenchmarkSetNew sets keys that do not exist.
func BenchmarkSetNew(b *testing.B) {
	for _, order := range []string{"ascending", "random"} {
		b.Run(order, func(b *testing.B) {
			value := bytes.Repeat([]byte("v"), 100)
			s := store.New(store.Options{})
			req := store.Request{ClientID: "bench", Timestamp: stampNow()}
			var dst, payload, key []byte
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				n := uint64(i)
				if order == "random" {
					n *= 0x9E3779B97F4A7C15
				}
				key = strconv.AppendUint(append(key[:0], "key:"...), n%1_000_000_000+1_000_000_000, 10)
				payload = wire.AppendRequest(payload[:0], []byte("SET"), key, value)
				req.Payload = payload
				dst = s.Do(&req, dst[:0]).Payload
				i++
			}
		})
	}
}

// BenchmarkExpire removes 20,000 keys that expire at once, each with a watcher.
func BenchmarkExpire(b *testing.B) {
	const keys = 20_000
	now := time.UnixMilli(base)
	s := store.New(store.Options{Now: func() time.Time { return now }})
	for i := range keys {
		s.Do(&store.Request{ClientID: "watcher", Payload: wire.AppendRequest(nil, "KEYNOTIFY", strconv.Itoa(i))}, nil)
	}
	for b.Loop() {
		b.StopTimer()
		for i := range keys {
			s.Apply(store.Write{Cause: "set", Key: []byte(strconv.Itoa(i)), Value: []byte("v"), Expires: now.Add(time.Second)})
		}
		s.TakeNotifications()
		now = now.Add(time.Second)
		b.StartTimer()
		s.Expire()
		if n := len(s.TakeNotifications()); n != keys {
			b.Fatalf("%d notifications", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
}

// BenchmarkMemory fills a store with 1,000,000 keys of 100 bytes and reports the memory per key: of the heap
// in use, and of the process.
func BenchmarkMemory(b *testing.B) {
	const keys = 1_000_000
	for b.Loop() {
		before := heapInUse()
		s := store.New(store.Options{})
		value := bytes.Repeat([]byte("v"), 100)
		req := store.Request{ClientID: "bench", Timestamp: stampNow()}
		var dst, payload, key []byte
		for i := range keys {
			key = strconv.AppendInt(append(key[:0], "key:"...), int64(100_000_000+i), 10)
			payload = wire.AppendRequest(payload[:0], []byte("SET"), key, value)
			req.Payload = payload
			dst = s.Do(&req, dst[:0]).Payload
		}
		resident := residentBytes()
		b.ReportMetric(float64(heapInUse()-before)/keys, "heap-B/key")
		if resident > 0 {
			b.ReportMetric(float64(resident)/1e6, "resident-MB")
		}
		runtime.KeepAlive(s)
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// residentBytes returns the resident memory of this process, or 0 where the system does not report it.
func residentBytes() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, line, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return 0
	}
	kilobytes, err := strconv.Atoi(fields[0])
	if err != nil {
		return 0
	}
	return kilobytes << 10
}
