package redis

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll returns the requests that it reads from r, with their arguments copied.
func readAll(r io.Reader, unauthenticated bool) (requests [][][]byte, largest int, err error) {
	in := newRequestReader(defaultMemory)
	in.unauthenticated = unauthenticated
	for {
		if err := in.fill(r); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return requests, largest, err
		}
		for {
			args, err := in.next()
			largest = max(largest, len(in.buf))
			if err == errIncomplete {
				break
			}
			if err != nil {
				return requests, largest, err
			}
			var kept [][]byte
			for _, a := range args {
				kept = append(kept, bytes.Clone(a))
			}
			requests = append(requests, kept)
		}
	}
}

func written(args [][]byte) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = appendBulk(b, a)
	}
	return b
}

func TestRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want string
		err  string
	}{
		{in: "*1\r\n$4\r\nPING\r\n", want: `[["PING"]]`},
		{in: "*2\r\n$3\r\nGET\r\n$0\r\n\r\n*1\r\n$1\r\nx\r\n", want: `[["GET" ""] ["x"]]`},
		{in: "*0\r\n*-1\r\n\r\n  \r\nPING\n", want: `[["PING"]]`},
		{in: "set k \"a\\x41\\n\\\"\" 'it\\'s \\n'\r\n", want: `[["set" "k" "aA\n\"" "it's \\n"]]`},
		{in: "set \"\" ''\r\n", want: `[["set" "" ""]]`},
		{in: "set \"a\"b\r\n", err: "unbalanced quotes in request"},
		{in: "set \"a\r\n", err: "unbalanced quotes in request"},
		{in: "ping\x01\r\n", err: string(errNotText)},
		{in: "ping a\x00\r\n", err: string(errNotText)},
		{in: "\x16\x03\x01", err: string(errNotText)},
		{in: "\xc3\xa9", err: string(errNotText)},
		{in: "*x\r\n", err: "invalid multibulk length"},
		{in: "*3000000000\r\n", err: "invalid multibulk length"},
		{in: "*180000000\r\n", err: "invalid multibulk length"}, // longer than maxUnread even if all arguments are empty
		{in: "*1\r\n:1\r\n", err: "expected '$', got ':'"},
		{in: "*1\r\n$-1\r\n", err: "invalid bulk length"},
		{in: "*1\r\n$01\r\n", err: "invalid bulk length"},
		{in: "*1\r\n$536870913\r\n", err: "invalid bulk length"},
		{in: strings.Repeat("x", maxInline+smallBuffer), err: "too big inline request"},
		{in: "*" + strings.Repeat("1", maxInline+smallBuffer), err: "too big mbulk count string"},
		{in: "*1\r\n$" + strings.Repeat("1", maxInline+smallBuffer), err: "too big bulk count string"},
	} {
		for name, r := range map[string]io.Reader{"at once": strings.NewReader(c.in), "bytes": iotest.OneByteReader(strings.NewReader(c.in))} {
			got, _, err := readAll(r, false)
			switch {
			case c.err != "":
				if err == nil || err.Error() != "Protocol error: "+c.err {
					t.Errorf("%s: %.40q: %v, want %s", name, c.in, err, c.err)
				}
			case err != nil || fmt.Sprintf("%q", got) != c.want:
				t.Errorf("%s: %q: %q, %v, want %s", name, c.in, got, err, c.want)
			}
		}
	}
	for in, want := range map[string]string{
		"*11\r\n": "unauthenticated multibulk length", "*1\r\n$16385\r\n": "unauthenticated bulk length",
	} {
		if _, _, err := readAll(strings.NewReader(in), true); err == nil || err.Error() != "Protocol error: "+want {
			t.Errorf("%q before AUTH: %v, want %s", in, err, want)
		}
	}
}

// FuzzRequest: a written request is read back, however it is divided, and the buffer never holds more than
// twice the bytes received.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING \"x\"\r\n"), []byte("SET\x00k\x00v"), byte(3))
	f.Add([]byte("*1048576\r\n$536870912\r\n"), []byte{}, byte(0))
	f.Fuzz(func(t *testing.T, raw, words []byte, cut byte) {
		_, largest, _ := readAll(bytes.NewReader(raw), false)
		if largest > max(smallBuffer, 2*len(raw)) {
			t.Errorf("%d bytes made a buffer of %d", len(raw), largest)
		}
		args := bytes.Split(words, []byte{0})
		b := written(args)
		at := int(cut) % (len(b) + 1)
		in := io.MultiReader(bytes.NewReader(b[:at]), bytes.NewReader(b[at:]), bytes.NewReader(b))
		got, _, err := readAll(in, false)
		if err != nil || len(got) != 2 || !slices.EqualFunc(got[0], args, bytes.Equal) || !slices.EqualFunc(got[1], args, bytes.Equal) {
			t.Errorf("%q became %q, %v", args, got, err)
		}
	})
}

// TestAnnouncedLengths: an announced length alone allocates no memory.
func TestAnnouncedLengths(t *testing.T) {
	for _, in := range []string{"*1048576\r\n$3\r\nGET\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$267386880\r\nx"} {
		const times = 100
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			if _, _, err := readAll(strings.NewReader(in), false); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		got := (after.TotalAlloc - before.TotalAlloc) / times
		if got > 2*smallBuffer {
			t.Errorf("%q took %d bytes", in, got)
		}
	}
}

// TestManyArguments: reading a request with many arguments allocates, and so copies, a fixed multiple of its size.
func TestManyArguments(t *testing.T) {
	for _, size := range []int{100, 1000, 60_000} {
		request := written(slices.Repeat([][]byte{make([]byte, size)}, (16<<20)/size))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, _, err := readAll(bytes.NewReader(request), false)
		runtime.ReadMemStats(&after)
		if len(got) != 1 || err != nil {
			t.Fatalf("%d requests, %v", len(got), err)
		}
		if took, most := after.TotalAlloc-before.TotalAlloc, uint64(20*len(request)); took > most {
			t.Errorf("arguments of %d bytes: %d bytes were allocated for %d, want at most %d", size, took, len(request), most)
		}
	}
}

// TestRequestsFitMemory: a request that cannot fit into the memory for clients is refused at its header.
func TestRequestsFitMemory(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		"*1000000\r\n": "", "*3000000\r\n": "invalid multibulk length",
		"*1\r\n$60000000\r\n": "", "*1\r\n$70000000\r\n": "invalid bulk length",
	} {
		in := newRequestReader(64 << 20)
		if err := in.fill(strings.NewReader(request)); err != nil {
			t.Fatal(err)
		}
		_, err := in.next()
		if ok := err == errIncomplete && want == "" || err == protocolError(want); !ok {
			t.Errorf("%q: got %v, want %q", request, err, want)
		}
	}
}
