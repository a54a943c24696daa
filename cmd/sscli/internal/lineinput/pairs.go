package lineinput

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

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

// A pairs reads a statestore.json: a JSON array with an object for each key. Each object has one
// member, whose name is the key and whose value is a string, as in Microsoft's sample. Microsoft
// does not document other types of values, so they are an error.
//
// The method next converts each object to a JSON line, with the number of the line in the
// statestore.json on which the object begins.
type pairs struct {
	source io.Reader

	text    []byte // the whole array; nil = no object yet
	decoder *json.Decoder
	counted int // the line ends in text[:counted] are counted
	lines   int // number of line ends in text[:counted]
	over    bool
}

func (p *pairs) lineNumber() int { return p.lines + 1 }

// next returns the next object as a JSON line, or io.EOF at the end of the array.
func (p *pairs) next() (repl.Line, error) {
	if p.decoder == nil {
		text, err := io.ReadAll(p.source)
		if err != nil {
			return repl.Line{}, err
		}
		p.text, p.decoder = text, json.NewDecoder(bytes.NewReader(text))
		if _, err := p.decoder.Token(); err != nil { // the opening bracket
			return p.errorAt(err)
		}
	}
	if p.over {
		return repl.Line{}, io.EOF
	}
	if !p.decoder.More() {
		return p.end()
	}
	var object json.RawMessage
	if err := p.decoder.Decode(&object); err != nil {
		return p.errorAt(err)
	}
	p.count(int(p.decoder.InputOffset()) - len(object))
	line := repl.Line{Number: p.lineNumber()}
	e, err := repl.ParsePair(string(object))
	if err == nil {
		var text []byte
		text, err = json.Marshal(map[string]string{"key": e.Key, "value": string(e.Value)})
		line.Text = string(text)
	}
	if err != nil {
		return line, &repl.LineError{Number: line.Number, Err: err}
	}
	return line, nil
}

// end reads the closing bracket, and returns io.EOF, or an error if anything but white space follows.
func (p *pairs) end() (repl.Line, error) {
	if _, err := p.decoder.Token(); err != nil { // the closing bracket
		return p.errorAt(err)
	}
	end := int(p.decoder.InputOffset())
	rest := bytes.TrimLeft(p.text[end:], " \t\r\n")
	p.count(len(p.text) - len(rest))
	p.over = true
	if len(rest) > 0 {
		return p.broken(fmt.Errorf("%q after the array", rest[:1]))
	}
	return repl.Line{}, io.EOF
}

// count adds the line ends between p.counted and offset to p.lines.
func (p *pairs) count(offset int) {
	p.lines += bytes.Count(p.text[p.counted:offset], []byte("\n"))
	p.counted = offset
}

// errorAt ends the input, and returns err, an error from the decoder, with its line number.
func (p *pairs) errorAt(err error) (repl.Line, error) {
	offset := len(p.text)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = int(syntax.Offset)
	}
	p.count(max(min(offset, len(p.text)), p.counted))
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = errors.New("the array does not end")
	}
	return p.broken(fmt.Errorf("JSON: %w", err))
}

// broken ends the input, and returns an error about the current line.
func (p *pairs) broken(err error) (repl.Line, error) {
	p.over = true
	line := repl.Line{Number: p.lineNumber()}
	return line, &repl.LineError{Number: line.Number, Err: err}
}
