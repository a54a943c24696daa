package help

import "testing"

// TestFill: text that is too wide is broken between words, but examples are not.
func TestFill(t *testing.T) {
	const text = `A paragraph of two lines, of which
the second one is short.

This one fits, and
stays as it is.

  sscli set key a-long-example --nx --ttl 10s

human     for people; it may
          change; words
raw       for pipes, and for scripts also
template=TEXT
          a Go template over the fields

Lines begin with
    term one  an explanation of it`
	const want = `A paragraph of two lines, of
which the second one is short.

This one fits, and
stays as it is.

  sscli set key a-long-example --nx --ttl 10s

  human          for people;
                 it may
                 change; words
  raw            for pipes,
                 and for
                 scripts also
  template=TEXT  a Go template
                 over the
                 fields

Lines begin with
  term one  an explanation of
            it`
	if got := Fill(text, 30); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Fill(text, Width); got != text {
		t.Errorf("all of it fits, and got\n%s", got)
	}
}
