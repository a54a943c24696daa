package format_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/format"
)

// writes records each Write.
type writes struct {
	all []string
	err error
}

func (w *writes) Write(p []byte) (int, error) {
	w.all = append(w.all, string(p))
	return len(p), w.err
}

func TestQueue(t *testing.T) {
	event := func(key string) format.Event { return format.Event{Op: "set", Key: key} }
	line := func(key string) string { return "set\t" + key + "\t?\n" }
	large := strings.Repeat("l", 5000)
	third := strings.Repeat("t", 1500)
	for name, test := range map[string]struct {
		queue []string
		want  []string
	}{
		"nothing":                    {nil, nil},
		"few":                        {[]string{"a", "b", "c"}, []string{line("a") + line("b") + line("c")}},
		"no more than a pipe takes":  {[]string{third, third, third, "a"}, []string{line(third) + line(third), line(third) + line("a")}},
		"one that is larger than it": {[]string{"a", large, "b"}, []string{line("a"), line(large), line("b")}},
	} {
		t.Run(name, func(t *testing.T) {
			var w writes
			p, err := format.New(&w, format.Options{Output: "raw"})
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range test.queue {
				if err := p.Queue(event(key)); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(p.Flush(), p.Flush()); err != nil || !slices.Equal(w.all, test.want) {
				t.Errorf("got %.80q, %v\nwant %.80q", w.all, err, test.want)
			}
		})
	}
}

// TestPrintAfterQueue checks that results stay in order, even if the last one causes an error.
func TestPrintAfterQueue(t *testing.T) {
	var w writes
	p, err := format.New(&w, format.Options{Output: `template={{if eq .key "bad"}}{{slice .key 9}}{{end}}{{.key}}`})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Queue(format.Event{Key: "a"}), p.Print(format.Event{Key: "b"})); err != nil {
		t.Fatal(err)
	}
	if err := p.Queue(format.Event{Key: "c"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Print(format.Event{Key: "bad"}); err == nil {
		t.Error("the template was executed")
	}
	if want := []string{"a\nb\n", "c\n"}; !slices.Equal(w.all, want) {
		t.Errorf("got %q, want %q", w.all, want)
	}
	w.err = errors.New("gone")
	if err := errors.Join(p.Queue(format.Event{Key: "d"}), p.Flush()); !errors.Is(err, w.err) {
		t.Errorf("%v, want %v", err, w.err)
	}
}

// BenchmarkEvent prints the most frequent result of watch.
func BenchmarkEvent(b *testing.B) {
	e := format.Event{Op: "set", Key: "setpoint", Value: []byte("21.5"), HasValue: true, Time: time.Now()}
	for _, output := range []string{"json", "raw"} {
		b.Run(output, func(b *testing.B) {
			p, err := format.New(io.Discard, format.Options{Output: output})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Print(e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
