package batch

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// A countingReader counts the bytes that were read.
type countingReader struct {
	io.Reader
	read atomic.Int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read.Add(int64(n))
	return n, err
}

const progressInterval = 200 * time.Millisecond

// showProgress shows the progress of the batch, unless results are printed on the terminal or lines
// are typed there. It returns the reader to use in place of source, and a function that stops the
// display.
func (b *batch) showProgress(source io.Reader) (io.Reader, func()) {
	a := b.app
	file, isFile := source.(*os.File)
	if term.IsTerminal(int(a.Stdout.Fd())) && !b.flags.silent || isFile && term.IsTerminal(int(file.Fd())) {
		return source, func() {}
	}
	counter := &countingReader{Reader: source}
	size := int64(0)
	if isFile {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	begun := time.Now()
	above, end := a.Live(progressInterval, func() string {
		return progressText(b.summary.lines.Load(), time.Since(begun), counter.read.Load(), size)
	})
	b.stderr = above
	return counter, func() {
		end()
		b.stderr = a.Stderr
	}
}

// progressText describes the progress of a batch. read is the number of bytes read, and size is the
// size of the input, or 0 if that is unknown.
func progressText(lines int64, elapsed time.Duration, read, size int64) string {
	text := fmt.Sprintf("%d lines, %.0f/s", lines, float64(lines)/elapsed.Seconds())
	if size <= 0 || read <= 0 {
		return text
	}
	read = min(read, size)
	left := time.Duration(float64(elapsed) * float64(size-read) / float64(read))
	return text + fmt.Sprintf(", %d%%, %v left", 100*read/size, left.Round(time.Second))
}
