package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

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
	line := &liveLine{w: a.stderr}
	above, err := a.above(line)
	if err != nil {
		return source, func() {} // the form is one that worked before
	}
	b.stderr = line
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
	begun := time.Now()
	end := line.animate(progressInterval, func() string {
		return progressText(b.tally.lines.Load(), time.Since(begun), at.bytes(), size)
	})
	return at, func() {
		end()
		above()
		b.stderr = a.stderr
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
