package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// A progress is a line at the end of standard error that is written again and
// again. What else goes there passes through its Write and stands above it.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	drawn bool
}

const clearLine = "\r\x1b[K"

func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.clear(); err != nil {
		return 0, err
	}
	return p.w.Write(b)
}

func (p *progress) clear() error {
	if !p.drawn {
		return nil
	}
	p.drawn = false
	_, err := io.WriteString(p.w, clearLine)
	return err
}

// draw writes the line; if standard error is gone there is nobody to show it to.
func (p *progress) draw(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drawn = true
	_, _ = io.WriteString(p.w, clearLine+text)
}

// A position counts the bytes that were read of a file.
type position struct {
	r    io.Reader
	mu   sync.Mutex
	read int64
}

func (p *position) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read += int64(n)
	return n, err
}

func (p *position) bytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read
}

// progressInterval is how often the line is written.
const progressInterval = 200 * time.Millisecond

// showProgress shows on standard error how far the batch is, if that is a terminal
// on which nothing else is written: no results, no lines as they are typed, no
// trace. What it returns is to be read in place of source, and ends it.
func (b *batch) showProgress(source io.Reader) (io.Reader, func()) {
	a := b.app
	file, isFile := source.(*os.File)
	termName, _ := a.env("TERM")
	if a.settings.Quiet || a.settings.Trace || termName == "dumb" ||
		!term.IsTerminal(int(a.stderr.Fd())) || term.IsTerminal(int(a.stdout.Fd())) || isFile && term.IsTerminal(int(file.Fd())) {
		return source, func() {}
	}
	p := &progress{w: a.stderr}
	before := a.faults
	faults, err := a.stderrPrinter(a.output, p)
	if err != nil {
		return source, func() {} // the form is one that worked before
	}
	a.faults, a.progress = faults, p
	at := &position{r: source}
	size := int64(0)
	if isFile {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
			if from, err := file.Seek(0, io.SeekCurrent); err == nil {
				size -= from
			}
		}
	}
	stop := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		begun, tick := time.Now(), time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.draw(progressText(b.tally.lines.Load(), time.Since(begun), at.bytes(), size))
			case <-stop:
				return
			}
		}
	})
	return at, func() {
		close(stop)
		drawing.Wait()
		_, _ = p.Write(nil) // nobody sees whether it was cleared
		a.faults, a.progress = before, nil
	}
}

// progressText is how far a batch is after so long; size is that of its input in
// bytes, 0 if it is not known.
func progressText(lines int64, elapsed time.Duration, read, size int64) string {
	text := fmt.Sprintf("%d lines, %.0f/s", lines, float64(lines)/elapsed.Seconds())
	if size <= 0 || read <= 0 {
		return text
	}
	read = min(read, size)
	left := time.Duration(float64(elapsed) * float64(size-read) / float64(read))
	return text + fmt.Sprintf(", %d%%, %v left", 100*read/size, left.Round(time.Second))
}

// errors is where errors go.
func (a *app) errors() io.Writer {
	if a.progress != nil {
		return a.progress
	}
	return a.stderr
}
