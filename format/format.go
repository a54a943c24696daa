// Package format prints results: for people, for pipes, as JSON, or with a template. It
// also implements the quoting in results and in the input lines of the shell.
//
// Create a [Printer] for a stream and print results on it:
//
//	p, err := format.New(os.Stdout, format.Options{Output: "json"})
//	if err != nil {
//		return err // lists the valid outputs
//	}
//	err = p.Print(format.Get{Key: "setpoint", Found: true, Value: []byte("21.5")})
//
// Promises:
//
//   - Print calls Write once for each result, or not at all if the result is empty, so that
//     the reader of a pipe gets each result immediately. Only Queue combines several results in
//     one call to Write.
//   - The outputs raw, json and template are contracts; human and wide may change. Unlike human,
//     wide never cuts text to fit the terminal.
//   - The outputs human, wide and json are safe on a terminal, whatever bytes the store holds:
//     characters that [unicode.IsPrint] rejects are escaped. With [Options.Terminal] a template
//     escapes every string of a result in the same way, but not its own text.
//   - No bytes are lost: raw writes a single value unchanged, and keys and values that
//     share a line in a form that [Unescape] decodes. In json, a key or value is a string
//     or, if it is not UTF-8, base64 in a field whose name ends in _b64.
//
// Raw is not safe on a terminal. Neither is a template that splits a string into bytes and
// converts them to characters. A Printer must not be used by several
// goroutines at once.
package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"time"
)

// Options configure a [Printer].
type Options struct {
	Output   string           // "human", "wide", "raw", "json", or "template=" and a Go template
	Terminal bool             // the writer is a terminal
	Color    bool             // use colors in the human output
	Now      func() time.Time // returns the current time, for the age of versions; nil = time.Now

	// Size returns the size of the terminal, in columns and rows. nil = the writer is not a
	// terminal, and the human output cuts nothing.
	Size func() (width, height int)
}

// A Result is a struct of this package that a Printer can print, such as [Get], [Set] or,
// for standard error, [Fault].
type Result interface {
	fielder
	human(w *writer)
}

// A rawResult is a Result with a raw form of its own. All other results have the human form,
// without color, as their raw form.
type rawResult interface{ raw(w *writer) }

// A diagnostic is a Result for standard error. A template does not format it.
type diagnostic interface{ diagnostic() }

// A Printer writes results to one stream.
type Printer struct {
	w        io.Writer
	output   string
	terminal bool
	template *template.Template
	text     writer // holds the queued results

	unfinished bool // the last write did not end in a line end
}

// Forms returns the values of Options.Output; the last is a prefix.
func Forms() []string { return []string{"human", "wide", "raw", "json", "template="} }

// A FormError means that Options.Output is not valid, or that its template fails for a result.
type FormError struct{ Why string } // Why follows "output " in its text

func (e *FormError) Error() string { return "output " + e.Why }

// New returns a Printer that writes to w, or a *[FormError] if o.Output is not valid.
func New(w io.Writer, o Options) (*Printer, error) {
	o.Color = o.Color && (o.Output == "human" || o.Output == "wide")
	p := &Printer{w: w, output: o.Output, terminal: o.Terminal, text: writer{style: newStyle(o)}}
	if source, ok := strings.CutPrefix(o.Output, "template="); ok {
		if strings.HasPrefix(source, "@") && !strings.Contains(source, "{{") {
			return nil, &FormError{fmt.Sprintf("%s: expected the template itself and no file, as in -o template=\"$(cat %s)\"", Quote(o.Output), ShWord(source[1:]))}
		}
		t, err := parseTemplate(source)
		if err != nil {
			return nil, templateError(err)
		}
		p.output, p.template = "template", t
		return p, nil
	}
	if o.Output == "wide" {
		p.output = "human"
	}
	if !slices.Contains(Forms(), o.Output) {
		return nil, &FormError{fmt.Sprintf("%s: must be %sTEMPLATE", Quote(o.Output), List(Forms(), "or"))}
	}
	return p, nil
}

// Print writes the queued results and then r. It returns an error if Write or the template fails.
func (p *Printer) Print(r Result) error {
	if err := p.Queue(r); err != nil {
		return errors.Join(p.Flush(), err)
	}
	return p.Flush()
}

// whole is the largest write to a pipe, in bytes, that is atomic on Linux (PIPE_BUF).
const whole = 4096

// Queue is like Print, but may leave r to be written by a later call or by Flush. Several results
// share one call to Write if together they have at most 4096 bytes.
func (p *Printer) Queue(r Result) error {
	before := len(p.text.out)
	if err := p.encode(r); err != nil || len(p.text.out) <= whole || before == 0 {
		return err
	}
	// r does not fit into the same write as the results before it.
	last := p.text.out[before:]
	p.text.out = p.text.out[:before]
	if err := p.Flush(); err != nil {
		return err
	}
	p.text.out = append(p.text.out, last...)
	return nil
}

// Flush writes the queued results. It returns the error of Write, if any.
func (p *Printer) Flush() error {
	out := p.text.out
	if len(out) == 0 {
		return nil
	}
	// Do not keep a buffer that grew for one large value.
	if p.text.out = out[:0]; cap(out) > 1<<20 {
		p.text.out = nil
	}
	p.unfinished = out[len(out)-1] != '\n'
	n, err := p.w.Write(out)
	if err == nil && n < len(out) {
		err = io.ErrShortWrite
	}
	if err != nil {
		p.text.out = nil // a writer that gave up may still read out
	}
	return err
}

// Unfinished reports whether the last result that was written does not end in a line end. Only a
// value in the raw output can lack one.
func (p *Printer) Unfinished() bool { return p.unfinished }

// encode writes r to p.text in the Printer's output form.
func (p *Printer) encode(r Result) error {
	w := &p.text
	raw, hasRaw := r.(rawResult)
	_, isDiagnostic := r.(diagnostic)
	switch {
	case p.output == "json":
		w.out = append(appendObject(w.out, r), '\n')
	case p.template != nil && !isDiagnostic:
		switch r.(type) {
		case End, Ready:
			return nil // templates are written for the fields of events, which these lack
		}
		var out bytes.Buffer
		if err := p.template.Execute(&out, p.templateData(collect(r))); err != nil {
			return templateError(err)
		}
		w.print(out.String(), "\n")
	case hasRaw && p.output != "human":
		raw.raw(w)
	default:
		r.human(w)
	}
	return nil
}
