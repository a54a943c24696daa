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

// beginsArray reports whether a JSON text begins with an array. It consumes nothing.
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

// A pairs reads a statestore.json: a JSON array with an object for each key, which has one member,
// the key with its value as text. Microsoft's sample has this form. Nothing that Microsoft publishes
// says what other types of values mean there, so they are refused.
//
// Each object becomes a JSON line with the number of the line that it begins on.
type pairs struct {
	source io.Reader

	text    []byte // the whole array; nil before the first object
	decoder *json.Decoder
	counted int // bytes of text whose line ends are counted in lines
	lines   int // line ends before counted
	over    bool
}

// Lines returns the number of the line that was read last.
func (p *pairs) Lines() int { return p.lines + 1 }

// next returns the next object as a JSON line, and io.EOF at the end of the array.
func (p *pairs) next() (repl.Line, error) {
	if p.decoder == nil {
		text, err := io.ReadAll(p.source)
		if err != nil {
			return repl.Line{}, err
		}
		p.text, p.decoder = text, json.NewDecoder(bytes.NewReader(text))
		if _, err := p.decoder.Token(); err != nil { // the bracket
			return p.wrong(err)
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
		return p.wrong(err)
	}
	p.count(int(p.decoder.InputOffset()) - len(object))
	line := repl.Line{Number: p.Lines()}
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

// end reads the end of the array.
func (p *pairs) end() (repl.Line, error) {
	if _, err := p.decoder.Token(); err != nil { // the bracket
		return p.wrong(err)
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

// count counts the line ends before an offset.
func (p *pairs) count(offset int) {
	p.lines += bytes.Count(p.text[p.counted:offset], []byte("\n"))
	p.counted = offset
}

// wrong returns an error of the decoder. Nothing after it can be read.
func (p *pairs) wrong(err error) (repl.Line, error) {
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

// broken returns an error about the present line, after which there are no more lines.
func (p *pairs) broken(err error) (repl.Line, error) {
	p.over = true
	line := repl.Line{Number: p.Lines()}
	return line, &repl.LineError{Number: line.Number, Err: err}
}
