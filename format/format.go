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
//   - One result is one Write, and none if it has nothing to write, so that a
//     reader at the other end of a pipe has each result as soon as it is there.
//     Only [Printer.PrintLater] collects several, until [Printer.Flush].
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
	buf      []byte
	held     []byte // by PrintLater
}

// New returns a Printer on w. An error says what is wrong with o.Output.
func New(w io.Writer, o Options) (*Printer, error) {
	p := &Printer{w: w, output: o.Output, terminal: o.Terminal, style: newStyle(o)}
	if source, ok := strings.CutPrefix(o.Output, "template="); ok {
		t, err := parseTemplate(source)
		if err != nil {
			return nil, fmt.Errorf("output template: %w", err)
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

// PrintLater keeps what Print would write, for whoever has more to print at once.
// The next Flush or Print writes it, and so does PrintLater when it is much. The
// errors are those of Print.
func (p *Printer) PrintLater(r Result) error {
	out, err := p.encode(p.held, r)
	if err != nil {
		return err
	}
	if p.held = out; len(out) >= maxHeld {
		return p.Flush()
	}
	return nil
}

// maxHeld is how much PrintLater keeps, in bytes.
const maxHeld = 64 << 10

// Flush writes what PrintLater has kept.
func (p *Printer) Flush() error {
	if len(p.held) == 0 {
		return nil
	}
	out := p.held
	if p.held = p.held[:0]; cap(out) > 1<<20 {
		p.held = nil
	}
	return p.write(out)
}

// Print writes one result. Errors are those of the writer or of the template.
func (p *Printer) Print(r Result) error {
	if err := p.Flush(); err != nil {
		return err
	}
	out, err := p.encode(p.buf[:0], r)
	if err != nil || len(out) == 0 {
		return err
	}
	// A buffer that one large value has filled is not worth keeping.
	if p.buf = out; cap(out) > 1<<20 {
		p.buf = nil
	}
	return p.write(out)
}

func (p *Printer) write(out []byte) error {
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
		return nil, fmt.Errorf("output template: %w", err)
	}
	return append(out.Bytes(), '\n'), nil
}
