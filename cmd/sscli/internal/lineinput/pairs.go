package lineinput

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"iter"

	"github.com/sscli/sscli/cmd/sscli/internal/dataset"
	"github.com/sscli/sscli/repl"
)

// beginsArray reports whether r begins with a JSON array, after any white space. It does not consume
// input.
func beginsArray(r *bufio.Reader) bool {
	for n := 1; ; n++ {
		text, err := r.Peek(n)
		if err != nil {
			return false
		}
		if c := text[n-1]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c == '['
		}
	}
}

// pairs returns an iterator over a statestore.json: a JSON array with an object for each key. Each
// object has one member, whose name is the key and whose value is a string, as in Microsoft's sample.
// Microsoft does not document other types of values, so they are an error.
//
// Each object becomes a JSON line, with the number of the line of source on which the object begins.
// Anything but an array of objects ends the iteration with an error that wraps a [*dataset.Error].
func pairs(source io.Reader) iter.Seq2[repl.Line, error] {
	return func(yield func(repl.Line, error) bool) {
		for r, err := range dataset.Read(source, dataset.Options{Format: dataset.JSON}) {
			line := repl.Line{Number: r.Line}
			if err == nil {
				if line.Text, err = jsonLine(string(r.JSON)); err != nil {
					err = &repl.LineError{Number: line.Number, Err: err}
				}
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

// jsonLine returns an object of a statestore.json as a JSON line.
func jsonLine(object string) (string, error) {
	e, err := repl.ParsePair(object)
	if err != nil {
		return "", err
	}
	line, err := json.Marshal(map[string]string{"key": e.Key, "value": string(e.Value)})
	return string(line), err
}

// A lineCounter counts the line ends that it reads.
type lineCounter struct {
	source io.Reader
	lines  int
}

func (c *lineCounter) Read(p []byte) (int, error) {
	n, err := c.source.Read(p)
	c.lines += bytes.Count(p[:n], []byte("\n"))
	return n, err
}
