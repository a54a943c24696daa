// Package format writes results: for people, for pipes, as JSON, or through a
// template. It also holds the quoting that they share with the lines of the
// shell.
//
// Make a [Printer] for a stream and print results to it:
//
//	p, err := format.New(os.Stdout, format.Options{Output: "json"})
//	if err != nil {
//		return err // names the outputs that there are
//	}
//	err = p.Print(format.Get{Key: "setpoint", Found: true, Value: []byte("21.5")})
//
// It promises:
//
//   - Print writes one result in one Write, and none if it has nothing to write, so
//     that a reader at the other end of a pipe has each result as soon as it is there.
//     Only who says so, with Queue, has several in one Write.
//   - The outputs raw, json and template are contracts; human may change.
//   - What human and json write can go to a terminal, whatever the bytes in the
//     store are: whatever [unicode.IsPrint] refuses is escaped. With
//     [Options.Terminal] templates write every string of a result like that too;
//     what the template itself says is left as it is.
//   - Bytes survive: raw writes one value as it is, and keys and values that
//     share a line so that [Unescape] gives them back. JSON has them as a string
//     or, where they are not UTF-8, as base64 in a field whose name ends in _b64.
//
// It does not promise that raw is harmless on a terminal, nor a template that
// takes a string apart into bytes and makes characters of them. A Printer is not
// for several goroutines at once.
package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"
)

// Options of a [Printer].
type Options struct {
	Output   string           // "human", "raw", "json" or "template=" and a Go template
	Terminal bool             // the writer is a terminal
	Color    bool             // for human
	Now      func() time.Time // for the age of versions; nil is time.Now
}

// A Result is one of this package's structs that a Printer prints, such as [Get],
// [Set] or, on standard error, [Fault].
type Result interface {
	fields() object
	human(dst []byte, s *style) []byte
	raw(dst []byte) []byte
}

// A Printer writes results to one stream.
type Printer struct {
	w        io.Writer
	output   string
	terminal bool
	style    style
	template *template.Template
	buf      []byte // what Queue has left to write
}

// New returns a Printer on w. An error says what is wrong with o.Output.
func New(w io.Writer, o Options) (*Printer, error) {
	p := &Printer{w: w, output: o.Output, terminal: o.Terminal, style: newStyle(o)}
	if source, ok := strings.CutPrefix(o.Output, "template="); ok {
		t, err := parseTemplate(source)
		if err != nil {
			return nil, &templateError{err}
		}
		p.output, p.template = "template", t
		return p, nil
	}
	switch o.Output {
	case "human", "raw", "json":
		return p, nil
	}
	return nil, fmt.Errorf("output %s: want human, raw, json or template=TEMPLATE", Quote(o.Output))
}

// Print writes one result, and before it what is queued. Errors are those of the
// writer or of the template.
func (p *Printer) Print(r Result) error {
	if err := p.Queue(r); err != nil {
		return errors.Join(p.Flush(), err)
	}
	return p.Flush()
}

// whole is how much a pipe takes in one piece, whoever else writes to it (PIPE_BUF).
const whole = 4096

// Queue is Print for one of several results that are there already: it may leave the
// result to the next call, or to Flush, as long as all of them are one Write that
// reaches a pipe in one piece.
func (p *Printer) Queue(r Result) error {
	before := len(p.buf)
	out, err := p.encode(p.buf, r)
	if err != nil {
		return err
	}
	p.buf = out
	if len(out) <= whole || before == 0 {
		return nil
	}
	// It does not fit behind the others.
	last := out[before:]
	p.buf = out[:before]
	if err := p.Flush(); err != nil {
		return err
	}
	p.buf = append(p.buf, last...)
	return nil
}

// Flush writes what is queued.
func (p *Printer) Flush() error {
	out := p.buf
	if len(out) == 0 {
		return nil
	}
	// A buffer that one large value has filled is not worth keeping.
	if p.buf = out[:0]; cap(out) > 1<<20 {
		p.buf = nil
	}
	n, err := p.w.Write(out)
	if err == nil && n < len(out) {
		err = io.ErrShortWrite
	}
	return err
}

func (p *Printer) encode(dst []byte, r Result) ([]byte, error) {
	switch {
	case p.output == "human":
		return r.human(dst, &p.style), nil
	case p.output == "json":
		return append(appendObject(dst, r.fields()), '\n'), nil
	case p.template == nil, isDiagnostic(r):
		return r.raw(dst), nil
	}
	out := bytes.NewBuffer(dst)
	if err := p.template.Execute(out, p.templateData(r.fields())); err != nil {
		return nil, &templateError{err}
	}
	return append(out.Bytes(), '\n'), nil
}
