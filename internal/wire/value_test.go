package wire_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/wire"
)

func TestHostileValuesAreSyntaxErrorsThatCostLittle(t *testing.T) {
	const end = "the end of the message"
	tests := []struct {
		name, payload string
		offset        int
		want, got     string
	}{
		{"empty", "", 0, "a RESP3 value", end},
		{"bare CR LF", "\r\n", 0, "one of + - : $ * _", `"\r\n"`},
		{"unknown kind", "%1\r\n", 0, "one of + - : $ * _", `"%1\r\n"`},
		{"NUL", "\x00", 0, "one of + - : $ * _", `"\x00"`},
		{"kind alone", "$", 1, "CR LF at the end of the line", end},
		{"string without CR LF", "+OK", 3, "CR LF at the end of the line", end},
		{"string with LF alone", "+OK\n", 3, "CR LF", `"\n"`},
		{"string with CR alone", "+OK\r", 3, "CR LF", `"\r"`},
		{"string with CR inside", "+O\rK\r\n", 2, "CR LF", `"\rK\r\n"`},
		{"string with LF inside", "+O\nK\r\n", 2, "CR LF", `"\nK\r\n"`},
		{"trailing byte", "+OK\r\nx", 5, end, `"x"`},
		{"trailing CR LF", ":1\r\n\r\n", 4, end, `"\r\n"`},
		{"two values", "+OK\r\n:1\r\n", 5, end, `":1\r\n"`},
		{"integer of minus zero", ":-0\r\n", 1, "a 64-bit integer", `"-0\r\n"`},
		{"blob of length -0", "$-0\r\n\r\n", 1, "a blob length", `"-0\r\n\r\n"`},
		{"array of length -0", "*-0\r\n", 1, "an array length", `"-0\r\n"`},
		{"integer with plus", ":+5\r\n", 1, "a 64-bit integer", `"+5\r\n"`},
		{"integer empty", ":\r\n", 1, "a 64-bit integer", `"\r\n"`},
		{"integer with space", ": 5\r\n", 1, "a 64-bit integer", `" 5\r\n"`},
		{"integer with fraction", ":1.5\r\n", 1, "a 64-bit integer", `"1.5\r\n"`},
		{"integer in hexadecimal", ":0x1\r\n", 1, "a 64-bit integer", `"0x1\r\n"`},
		{"integer with underscore", ":1_0\r\n", 1, "a 64-bit integer", `"1_0\r\n"`},
		{"integer 2^63", ":9223372036854775808\r\n", 1, "a 64-bit integer", `"9223372036854775808\r\n"`},
		{"null with text", "_x\r\n", 0, "_ CR LF", `"_x\r\n"`},
		{"blob length -2", "$-2\r\n", 0, "a blob length of 0 or more, or -1", `"$-2\r\n"`},
		{"blob length with plus", "$+1\r\na\r\n", 1, "a blob length", `"+1\r\na\r\n"`},
		{"blob length empty", "$\r\n", 1, "a blob length", `"\r\n"`},
		{"blob length 2^31", "$2147483648\r\n", 0, "a blob of at most the 0 bytes that follow", `"$2147483648\r\n"`},
		{"blob length 2^63-1", "$9223372036854775807\r\n", 0, "a blob of at most the 0 bytes that follow", `"$9223372036854775807\r\n"`},
		{"blob length 2^63", "$9223372036854775808\r\n", 1, "a blob length", `"9223372036854775808\r\n"`},
		{"blob length 2^64", "$18446744073709551616\r\n", 1, "a blob length", `"18446744073709551616\r\n"`},
		{"blob length -2^63", "$-9223372036854775808\r\n", 0, "a blob length of 0 or more, or -1", `"$-9223372036854775808\r\n"`},
		{"blob too short", "$3\r\nab\r\n", 7, "CR LF after the blob", `"\n"`},
		{"blob too long", "$3\r\nabcd\r\n", 7, "CR LF after the blob", `"d\r\n"`},
		{"blob without CR LF", "$3\r\nabc", 7, "CR LF after the blob", end},
		{"blob with CR alone", "$3\r\nabc\r", 7, "CR LF after the blob", `"\r"`},
		{"array length -1", "*-1\r\n", 0, "an array length of 0 or more", `"*-1\r\n"`},
		{"array length empty", "*\r\n", 1, "an array length", `"\r\n"`},
		{"array length 2^31", "*2147483648\r\n", 0, "an array that fits the 0 bytes that follow", `"*2147483648\r\n"`},
		{"array length 2^63-1", "*9223372036854775807\r\n", 0, "an array that fits the 0 bytes that follow", `"*9223372036854775807\r\n"`},
		{"array length 2^63", "*9223372036854775808\r\n", 1, "an array length", `"9223372036854775808\r\n"`},
		{"array length 2^64", "*18446744073709551616\r\n", 1, "an array length", `"18446744073709551616\r\n"`},
		{"array too short", "*2\r\n$1\r\na\r\n", 11, "a RESP3 value", end},
		{"array longer than the bytes can hold", "*2\r\n+\r\n", 0, "an array that fits the 3 bytes that follow", `"*2\r\n+\r\n"`},
		{"null array inside", "*1\r\n*-1\r\n", 4, "an array length of 0 or more", `"*-1\r\n"`},
		{"10,000 arrays deep", strings.Repeat("*1\r\n", 10_000) + "+OK\r\n", 64, "arrays nested at most 16 deep", `"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"…`},
		{"wide and deep", strings.Repeat("*20\r\n", 200), 80, "arrays nested at most 16 deep", `"*20\r\n*20\r\n*20\r\n*20\r\n*20\r"…`},
		{"lengths that multiply", strings.Repeat("*1000\r\n", 16) + strings.Repeat("x", 3000), 112, "one of + - : $ * _", `"xxxxxxxxxxxxxxxxxxxxxxxx"…`},
		{"long line", "+" + strings.Repeat("x", 30_000), 30_001, "CR LF at the end of the line", end},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			payload := []byte(test.payload)
			v, err := wire.ParseValue(payload)
			want := &wire.SyntaxError{Offset: test.offset, Want: test.want, Got: test.got}
			if diff := cmp.Diff(error(want), err); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wire.Value{}, v); diff != "" {
				t.Errorf("a value beside an error (-want +got):\n%s", diff)
			}
			if got, most := costs(payload, parseValueErr), uint64(64<<10); got > most {
				t.Errorf("ParseValue took %d bytes of memory, want at most %d", got, most)
			}
			for _, parse := range []func([]byte) error{parseReplyErr, parseRequestErr, parseNotificationErr} {
				if got, most := costs(payload, parse), uint64(64<<10); got > most {
					t.Errorf("a decoder took %d bytes of memory, want at most %d", got, most)
				}
			}
		})
	}
}

// costs returns the memory in bytes that one call allocates.
func costs(payload []byte, parse func([]byte) error) uint64 {
	const runs = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		_ = parse(payload)
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / runs
}

func TestSyntaxErrorReadsAsOneShortLine(t *testing.T) {
	_, err := wire.ParseValue([]byte("$-2\r\n" + strings.Repeat("x", 1000)))
	const want = `bad RESP3 at byte 0: expected a blob length of 0 or more, or -1, got "$-2\r\nxxxxxxxxxxxxxxxxxxx"…`
	if err == nil || err.Error() != want {
		t.Errorf(" got %v\nwant %s", err, want)
	}
}

func TestValuesAtTheLimitsAreParsed(t *testing.T) {
	tests := []struct{ payload, want string }{
		{":9223372036854775807\r\n", ":9223372036854775807"},
		{":-9223372036854775808\r\n", ":-9223372036854775808"},
		{":007\r\n", ":7"},
		{"$003\r\nabc\r\n", `"abc"`},
		{"+\r\n", `+""`},
		{"-\r\n", `-""`},
		{"*3\r\n+\r\n-\r\n_\r\n", `[+"" -"" null]`},
		{strings.Repeat("*1\r\n", 16) + ":1\r\n", strings.Repeat("[", 16) + ":1" + strings.Repeat("]", 16)},
		{"*9\r\n" + strings.Repeat(":1\r\n", 9), "[" + strings.Repeat(":1 ", 8) + ":1]"},
	}
	for _, test := range tests {
		v, err := wire.ParseValue([]byte(test.payload))
		if err != nil {
			t.Errorf("%q: %v", test.payload, err)
		} else if err := same(show(v), test.want); err != nil {
			t.Errorf("%q:\n%v", test.payload, err)
		}
	}
}

func TestAppendingToDecodedTextLeavesTheMessageAlone(t *testing.T) {
	const message = "*3\r\n$1\r\na\r\n+b\r\n-c\r\n"
	payload := []byte(message)
	v, err := wire.ParseValue(payload)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range v.Items {
		_ = append(item.Text, 'X')
	}
	if err := same(string(payload), message); err != nil {
		t.Error(err)
	}
}

func TestEncodersAppend(t *testing.T) {
	dst := []byte("x")
	dst = wire.AppendRequest(dst, "A")
	dst = wire.AppendValue(dst, wire.Value{Kind: wire.Integer, Int: 7})
	dst = wire.AppendError(dst, "no")
	dst = wire.AppendNotification(dst, wire.Notification{Op: wire.OpDelete})
	const want = "x" + "*1\r\n$1\r\nA\r\n" + ":7\r\n" + "-ERR no\r\n" + "*2\r\n$6\r\nNOTIFY\r\n$6\r\nDELETE\r\n"
	if err := same(string(dst), want); err != nil {
		t.Error(err)
	}
}

// render encodes a value without the package's encoder.
func render(v wire.Value) string {
	switch v.Kind {
	case wire.Integer:
		return fmt.Sprintf(":%d\r\n", v.Int)
	case wire.Blob:
		return fmt.Sprintf("$%d\r\n%s\r\n", len(v.Text), v.Text)
	case wire.Null:
		return "$-1\r\n"
	case wire.Array:
		s := fmt.Sprintf("*%d\r\n", len(v.Items))
		for _, item := range v.Items {
			s += render(item)
		}
		return s
	default:
		return fmt.Sprintf("%c%s\r\n", v.Kind, v.Text)
	}
}

// grow builds a value from bytes, and returns the unused bytes.
func grow(data []byte, depth int) (wire.Value, []byte) {
	if len(data) < 2 {
		return wire.Value{Kind: wire.Null}, nil
	}
	choice, n := data[0]%6, int(data[1]%8)
	data = data[2:]
	text := data[:min(n, len(data))]
	switch {
	case choice == 0:
		return wire.Value{Kind: wire.Null}, data
	case choice == 1:
		var b [8]byte
		copy(b[:], text)
		return wire.Value{Kind: wire.Integer, Int: int64(binary.LittleEndian.Uint64(b[:]))}, data[len(text):]
	case choice == 2:
		return wire.Value{Kind: wire.Blob, Text: text}, data[len(text):]
	case choice == 3 && depth < 15:
		v := wire.Value{Kind: wire.Array, Items: []wire.Value{}}
		for range n {
			var item wire.Value
			item, data = grow(data, depth+1)
			v.Items = append(v.Items, item)
		}
		return v, data
	default:
		line := strings.NewReplacer("\r", "", "\n", "").Replace(string(text))
		kind := wire.SimpleString
		if choice == 5 {
			kind = wire.SimpleError
		}
		return wire.Value{Kind: kind, Text: []byte(line)}, data[len(text):]
	}
}

// FuzzValue: every parsed value is encoded to bytes with the same meaning, and canonical bytes to themselves.
func FuzzValue(f *testing.F) {
	for _, s := range []string{
		"+OK\r\n", "-ERR syntax error\r\n", ":-1\r\n", "$4\r\n1234\r\n", "$-1\r\n", "_\r\n", "$0\r\n\r\n",
		"*2\r\n*2\r\n$4\r\nkey1\r\n$4\r\nkey2\r\n$3\r\n\x00\xffx\r\n",
		":007\r\n", ":" + strings.Repeat("0", 20) + "7\r\n", "$" + strings.Repeat("0", 20) + "1\r\nx\r\n", "$-2\r\n", "*-1\r\n", "*9999999999\r\n", "\x03\x03\x01\x08\x02\x04abcd\x04\x02OK",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, err := wire.ParseValue(data); err == nil {
			if line, _, _ := bytes.Cut(data, []byte("\r\n")); bytes.IndexByte([]byte(":$*"), line[0]) >= 0 && len(line) > 21 {
				t.Fatalf("%q has more digits than a number", data)
			}
			encoded := wire.AppendValue(nil, v)
			again, err := wire.ParseValue(encoded)
			if err != nil {
				t.Fatalf("%q was encoded to %q: %v", data, encoded, err)
			}
			if diff := cmp.Diff(v, again); diff != "" {
				t.Fatalf("%q changed (-first +again):\n%s", data, diff)
			}
		} else if err := syntaxErrorWithin(err, len(data)); err != nil {
			t.Fatal(err)
		}

		tree, _ := grow(data, 0)
		canonical := render(tree)
		v, err := wire.ParseValue([]byte(canonical))
		if err != nil {
			t.Fatalf("%q: %v", canonical, err)
		}
		if err := same(show(v), show(tree)); err != nil {
			t.Fatal(err)
		}
		if err := same(string(wire.AppendValue(nil, v)), canonical); err != nil {
			t.Fatal(err)
		}
	})
}

func syntaxErrorWithin(err error, size int) error {
	e, ok := err.(*wire.SyntaxError)
	if !ok || e.Offset < 0 || e.Offset > size || len(e.Error()) > 300 {
		return fmt.Errorf("got %T %s, want a short *SyntaxError within %s bytes", err, err, strconv.Itoa(size))
	}
	return nil
}
