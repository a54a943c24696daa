package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/sscli/sscli/format"
)

const (
	logPatience = time.Second            // a line that was not written for this long is dropped
	logWait     = 100 * time.Millisecond // the longest time that a caller waits for its line, once per stall
	logSize     = 4 << 20                // how many bytes of lines may wait
)

// A logWriter writes the log of a server, or of a command that holds a lock. Nobody waits for a reader of the log that
// stalls, such as a collector behind a full pipe: lines that cannot be written within a second are dropped and
// counted, and the count is written once the reader is back. While the reader keeps up, Write returns
// when the line is written, so the log keeps its order among the outputs of other processes.
type logWriter struct {
	to   io.Writer
	form string // of the line with the count

	mu      sync.Mutex
	queue   []logLine
	size    int  // bytes in queue
	running bool // run is writing
	stalled bool // a caller has waited in vain since run began
	dropped int
	empty   chan struct{} // closed when run has ended
}

type logLine struct {
	text    []byte
	at      time.Time
	written chan struct{} // closed when the line was written or dropped
}

func (w *logWriter) Write(text []byte) (int, error) {
	line := logLine{bytes.Clone(text), time.Now(), make(chan struct{})}
	w.mu.Lock()
	if w.size+len(text) > logSize {
		w.dropped++
		w.mu.Unlock()
		return len(text), nil
	}
	w.queue, w.size = append(w.queue, line), w.size+len(text)
	if !w.running {
		w.running, w.empty = true, make(chan struct{})
		go w.run()
	}
	stalled := w.stalled
	w.mu.Unlock()
	if stalled {
		return len(text), nil
	}
	timer := time.NewTimer(logWait)
	defer timer.Stop()
	select {
	case <-line.written:
	case <-timer.C:
		w.mu.Lock()
		w.stalled = w.running
		w.mu.Unlock()
	}
	return len(text), nil
}

// run writes lines until none is left. flush waits for it.
func (w *logWriter) run() {
	for {
		w.mu.Lock()
		if len(w.queue) == 0 {
			w.running, w.stalled = false, false
			dropped, form := w.dropped, w.form
			w.dropped = 0
			close(w.empty)
			w.mu.Unlock()
			if dropped > 0 {
				_, _ = w.Write(countLine(dropped, form))
			}
			return
		}
		line := w.queue[0]
		w.queue, w.size = w.queue[1:], w.size-len(line.text)
		late := time.Since(line.at) > logPatience
		if late {
			w.dropped++
		}
		w.mu.Unlock()
		if !late {
			_, _ = w.to.Write(line.text) // there is no place left to report an error
		}
		close(line.written)
	}
}

func (w *logWriter) setForm(form string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.form = form
}

// countLine returns the line that says how many lines were dropped.
func countLine(n int, form string) []byte {
	var line bytes.Buffer
	if p, err := format.New(&line, format.Options{Output: form}); err == nil {
		_ = p.Print(format.Note{Level: format.Warning, Message: fmt.Sprintf("%s of the log dropped, because nobody read the log for a while", format.Count(n, "line"))})
	}
	return line.Bytes()
}

// flush waits until all lines are written, but not for a reader that stalls.
func (w *logWriter) flush() {
	w.mu.Lock()
	running, empty := w.running, w.empty
	w.mu.Unlock()
	if !running {
		return
	}
	select {
	case <-empty:
	case <-time.After(logPatience):
	}
}

// NeverWait lets the command go on whether or not somebody reads standard error: see logWriter.
func (a *App) NeverWait() error {
	if a.log == nil {
		a.log = &logWriter{to: a.Stderr}
	}
	var err error
	a.Faults, err = a.Diagnostics(a.Output)
	return err
}

// errors returns the writer for messages and traces on standard error.
func (a *App) errors() io.Writer {
	if a.LogsResults && a.log == nil {
		a.log = &logWriter{to: a.Stderr}
	}
	if a.log == nil {
		return a.Stderr
	}
	return a.log
}

// Logger returns a logger for servers. It prints warnings and errors with [App.Warn], and other
// records with [App.Inform]. It prints debug records only with -vv.
func (a *App) Logger() *slog.Logger {
	h := &logHandler{app: a}
	h.with = func(out *bytes.Buffer) slog.Handler {
		return slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: onlyAttrs})
	}
	return slog.New(h)
}

// onlyAttrs removes the time, the level and the message of a record, and attributes that are nil.
func onlyAttrs(groups []string, a slog.Attr) slog.Attr {
	builtin := len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey)
	if builtin || a.Value.Kind() == slog.KindAny && a.Value.Any() == nil {
		return slog.Attr{}
	}
	return a
}

// A logHandler prints a record as its message, followed by the attributes as NAME=VALUE.
type logHandler struct {
	app  *App
	with func(out *bytes.Buffer) slog.Handler // returns a handler that writes attributes to out
}

func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && !h.app.Settings.Quiet || h.app.Settings.Verbose > 1
}

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	var attrs bytes.Buffer
	if err := h.with(&attrs).Handle(ctx, r); err != nil {
		return err
	}
	line := strings.TrimSpace(r.Message + " " + attrs.String())
	if r.Level >= slog.LevelWarn {
		h.app.Warn(line)
	} else {
		h.app.Inform(line)
	}
	return nil
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.app, func(out *bytes.Buffer) slog.Handler { return h.with(out).WithAttrs(attrs) }}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.app, func(out *bytes.Buffer) slog.Handler { return h.with(out).WithGroup(name) }}
}
