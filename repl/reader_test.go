package repl

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/sscli/sscli/format"
)

// all reads all lines and continues after each LineError.
func all(t testing.TB, r *Reader) (lines []Line, faults []string) {
	t.Helper()
	for {
		line, err := r.Next()
		if _, ok := errors.AsType[*LineError](err); ok {
			faults = append(faults, err.Error())
			continue
		}
		if err == io.EOF {
			return lines, faults
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
}

func TestReader(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		lines    []Line
		faults   []string
	}{
		{name: "empty"},
		{name: "blank and comments", in: "\n \t\r\n# a 'comment\n"},
		{
			name: "no line end at the end",
			in:   "get a\r\n\nget b # why",
			lines: []Line{
				{1, "get a", plain("get", "a")},
				{3, "get b # why", plain("get", "b")},
			},
		},
		{
			name: "quotes join lines",
			in:   "set a 'x\ny' \"z\r\n\n\"\r\nget a\n",
			lines: []Line{
				{1, "set a 'x\ny' \"z\r\n\n\"", []Word{{"set", false}, {"a", false}, {"x\ny", true}, {"z\r\n\n", true}}},
				{5, "get a", plain("get", "a")},
			},
		},
		{
			name:   "syntax error",
			in:     "get a\n\nset a \"\\q\n\"\nget b\n",
			lines:  []Line{{1, "get a", plain("get", "a")}, {5, "get b", plain("get", "b")}},
			faults: []string{`line 3: byte 7: expected one of \n \r \t \\ \" \xHH, got \q`},
		},
		{
			name:   "quote open at the end",
			in:     "get a\nset a 'x\ny' 'z\nget b\n",
			lines:  []Line{{1, "get a", plain("get", "a")}},
			faults: []string{"line 3: the quote is not closed"},
		},
		{
			name:   "too long",
			in:     "get a\nset a " + strings.Repeat("x", 100) + "\nget b\n",
			lines:  []Line{{1, "get a", plain("get", "a")}},
			faults: []string{"line 2: the line is too long"},
		},
		{
			name:   "too long in quotes",
			in:     "'\n" + strings.Repeat("del a\n", 100),
			faults: []string{"line 1: the line is too long"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				r := NewReader(in)
				r.Joins, r.maxBytes = true, 64
				lines, faults := all(t, r)
				if diff := cmp.Diff(tt.lines, lines); diff != "" {
					t.Errorf("lines (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.faults, faults); diff != "" {
					t.Errorf("errors (-want +got):\n%s", diff)
				}
				if _, err := r.Next(); err != io.EOF {
					t.Errorf("after the end: got %v, want io.EOF", err)
				}
			}
		})
	}
}

// TestReaderSeparate: without Joins, an open quote and a line that is too long are errors of their own
// lines.
func TestReaderSeparate(t *testing.T) {
	in := "get a\nset a 'x\nget 'b'\nset a \"\\q\nset s it's\n" + strings.Repeat("x", readSize) + "\nget c\n" + strings.Repeat("y", readSize)
	want := []Line{
		{1, "get a", plain("get", "a")},
		{3, "get 'b'", []Word{{"get", false}, {"b", true}}},
		{7, "get c", plain("get", "c")},
	}
	wantFaults := []string{
		"line 2: byte 6: the quote is not closed",
		"line 4: byte 6: the quote is not closed",
		`line 5: byte 8: a quote inside a word; to quote the whole word, write "it's"`,
		"line 6: the line is too long",
		"line 8: the line is too long",
	}
	for _, stream := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
		r := NewReader(stream)
		r.maxBytes = 64
		lines, faults := all(t, r)
		if diff := cmp.Diff(want, lines) + cmp.Diff(wantFaults, faults); diff != "" || r.Lines() != 8 {
			t.Errorf("%d lines (-want +got):\n%s", r.Lines(), diff)
		}
	}
}

// TestReaderFaultyLine checks that the line of a LineError has a number and a text.
func TestReaderFaultyLine(t *testing.T) {
	r := NewReader(strings.NewReader("\nget '\r\n"))
	r.Joins = true
	line, err := r.Next()
	if !errors.Is(err, ErrIncomplete) {
		t.Errorf("got %v, want ErrIncomplete", err)
	}
	if diff := cmp.Diff(Line{Number: 2, Text: "get '\r\n"}, line); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReaderLongWords reads words that span several reads, with quotes in the middle.
func TestReaderLongWords(t *testing.T) {
	for _, n := range []int{1000, 1023, 1024, 1025, 3000, readSize - 6, readSize, 3 * readSize} {
		long := strings.Repeat("x", n)
		in := "set a '" + long + `"y z"#` + long + "' # " + long + "\nget " + long + "\r\nget b"
		want := []Line{
			{Number: 1, Words: []Word{{"set", false}, {"a", false}, {long + `"y z"#` + long, true}}},
			{Number: 2, Words: plain("get", long)},
			{Number: 3, Words: plain("get", "b")},
		}
		for _, stream := range []io.Reader{strings.NewReader(in), iotest.HalfReader(strings.NewReader(in))} {
			lines, faults := all(t, NewReader(stream))
			for i := range lines {
				lines[i].Text = ""
			}
			if !cmp.Equal(want, lines) || len(faults) > 0 {
				t.Errorf("%d bytes: got %d lines, which differ, and %v", n, len(lines), faults)
			}
		}
	}
}

func TestReaderLongLine(t *testing.T) {
	value := strings.Repeat("0123456789\n", 20_000)
	r := NewReader(strings.NewReader("set a '" + value + "'\n"))
	r.Joins = true
	lines, faults := all(t, r)
	want := []Word{{"set", false}, {"a", false}, {value, true}}
	if len(lines) != 1 || len(faults) > 0 || !slices.Equal(lines[0].Words, want) {
		t.Errorf("got %d lines and the errors %v, want one line with the value", len(lines), faults)
	}
}

// TestReaderBrokenStream checks that an incomplete line is not returned: a command must
// not run with half of its words.
func TestReaderBrokenStream(t *testing.T) {
	cut := errors.New("cut")
	r := NewReader(io.MultiReader(strings.NewReader("get a\ndel abc"), iotest.ErrReader(cut)))
	if line, err := r.Next(); err != nil || line.Text != "get a" {
		t.Fatalf("got %q, %v", line.Text, err)
	}
	for range 2 {
		if line, err := r.Next(); err != cut || line.Text != "" {
			t.Fatalf("got %q, %v; want the stream's error", line.Text, err)
		}
	}
}

// TestReaderDoesNotReadAhead checks that each line from a pipe is returned at once.
func TestReaderDoesNotReadAhead(t *testing.T) {
	in, out := io.Pipe()
	defer in.Close()
	r := NewReader(in)
	for i := range 3 {
		text := fmt.Sprintf("get %d", i)
		written := make(chan error, 1)
		go func() {
			_, err := out.Write([]byte(text + "\n"))
			written <- err
		}()
		if line, err := r.Next(); err != nil || line.Text != text {
			t.Fatalf("got %q, %v; want %q", line.Text, err, text)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzReader checks that Split finds the same words in a line as the Reader, and that the lines
// do not depend on the reads.
func FuzzReader(f *testing.F) {
	f.Add("get a\r\nset a 'x\ny' # c\n\"\\q\"\n'")
	f.Add("a\r")
	f.Add("a\r\r\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		whole, split := NewReader(strings.NewReader(in)), NewReader(iotest.OneByteReader(strings.NewReader(in)))
		whole.Joins, split.Joins = true, true
		lines, faults := all(t, whole)
		bytewise, bytewiseFaults := all(t, split)
		if diff := cmp.Diff(lines, bytewise) + cmp.Diff(faults, bytewiseFaults); diff != "" {
			t.Errorf("%q, in one read and in many (-one +many):\n%s", in, diff)
		}
		for _, line := range lines {
			words, err := Split(line.Text + "\r\n") // since a line may end with more of them
			if err != nil {
				t.Fatalf("Split(%q): %v", line.Text, err)
			}
			if diff := cmp.Diff(words, line.Words); diff != "" {
				t.Errorf("%q (-Split +Reader):\n%s", line.Text, diff)
			}
		}
	})
}

// FuzzReaderLines checks that lines joined into a stream come back unchanged.
func FuzzReaderLines(f *testing.F) {
	f.Add("set\x01a\x01b\nc\x02get\x01-")
	f.Fuzz(func(t *testing.T, in string) {
		var joined strings.Builder
		var want [][]Word
		for line := range strings.SplitSeq(in, "\x02") {
			var written []string
			for _, word := range fuzzWords(line) {
				written = append(written, format.Word(word))
			}
			text := strings.Join(written, " ")
			words, err := Split(text)
			if err != nil {
				t.Fatalf("Split(%q): %v", text, err)
			}
			want = append(want, words)
			joined.WriteString(text + "\n")
		}
		lines, faults := all(t, NewReader(strings.NewReader(joined.String())))
		var got [][]Word
		for i, line := range lines {
			got = append(got, line.Words)
			if line.Number != i+1 {
				t.Errorf("line %d has number %d", i+1, line.Number)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(faults) > 0 {
			t.Errorf("%q: %v (-want +got):\n%s", joined.String(), faults, diff)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	in := strings.Repeat("set setpoint \"21.5\\n\" PX 1000\n", 1000)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if lines, _ := all(b, NewReader(strings.NewReader(in))); len(lines) != 1000 {
			b.Fatalf("got %d lines, want 1000", len(lines))
		}
	}
}
