package lineinput_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
)

// entries reads JSON lines. It returns them as LINE:KEY=VALUE, and the error that ended the input.
func entries(ctx context.Context, source io.Reader, first int) (got []string, err error) {
	for e, err := range lineinput.Entries(ctx, source, first) {
		if err != nil {
			return got, err
		}
		got = append(got, string(rune('0'+e.Line))+":"+e.Key+"="+string(e.Value))
	}
	return got, nil
}

// TestEntries reads the same text from a regular file and from a pipe.
func TestEntries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		first      int
		want       []string
		err        string
	}{
		{name: "all", text: "{\"key\":\"a\",\"value\":\"1\"}\r\n\n{\"key\":\"b\",\"value\":\"2\"}", first: 1, want: []string{"1:a=1", "3:b=2"}},
		{name: "none", first: 1},
		{name: "from a line", text: "not JSON\n{\"key\":\"b\",\"value\":\"2\"}\n", first: 2, want: []string{"2:b=2"}},
		{name: "from behind the end", text: "{\"key\":\"a\",\"value\":\"1\"}\n", first: 3, err: "--from-line 3: the input has 1 lines"},
		{name: "an error in a line", text: "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"\",\"value\":\"2\"}\n{\"key\":\"c\",\"value\":\"3\"}\n", first: 1,
			want: []string{"1:a=1"}, err: "line 2: the key is empty: it must have at least one byte"},
	} {
		name := filepath.Join(t.TempDir(), "lines")
		if err := os.WriteFile(name, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for from, source := range map[string]io.Reader{"a file": file, "a pipe": strings.NewReader(tt.text)} {
			got, err := entries(t.Context(), source, tt.first)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", tt.name, from, diff)
			}
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tt.err || err != nil && !fault.IsA[*fault.UsageError](err) {
				t.Errorf("%s of %s: %T %q, want a usage error %q", tt.name, from, err, text, tt.err)
			}
		}
	}
}

// TestInterrupt: the end of the context ends reading from a file, and from a pipe that nobody writes to.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	why := errors.New("that is enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	silent, w := io.Pipe()
	defer w.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := entries(ctx, silent, 1)
		ended <- err
	}()
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("a silent pipe ended with %v", err)
	}
	name := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(name, []byte("{\"key\":\"a\",\"value\":\"1\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got, err := entries(ctx, file, 1); len(got) > 0 || !errors.Is(err, why) {
		t.Errorf("a file: %q, %v", got, err)
	}
	if read, err := file.Seek(0, io.SeekCurrent); read != 0 || err != nil {
		t.Errorf("%d bytes of a file were read after the end, %v", read, err) // the first line may have terabytes
	}
}
