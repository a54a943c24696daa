package batch

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// A position is a reader that counts the bytes that were read.
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

// progressInterval is the time between two updates of a line of progress.
const progressInterval = 200 * time.Millisecond

// showProgress shows the progress of the batch, unless its lines are typed. It returns the
// reader to use in place of source, and a function that ends the progress.
func (b *batch) showProgress(source io.Reader) (io.Reader, func()) {
	a := b.app
	file, isFile := source.(*os.File)
	if term.IsTerminal(int(a.Stdout.Fd())) && !b.flags.silent || isFile && term.IsTerminal(int(file.Fd())) {
		return source, func() {}
	}
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
	above, end := a.Live(progressInterval, func() string {
		return progressText(b.summary.lines.Load(), time.Since(begun), at.bytes(), size)
	})
	b.stderr = above
	return at, func() {
		end()
		b.stderr = a.Stderr
	}
}

// progressText describes the progress of a batch after elapsed. read and size are bytes of its
// input; size is 0 if it is unknown.
func progressText(lines int64, elapsed time.Duration, read, size int64) string {
	text := fmt.Sprintf("%d lines, %.0f/s", lines, float64(lines)/elapsed.Seconds())
	if size <= 0 || read <= 0 {
		return text
	}
	read = min(read, size)
	left := time.Duration(float64(elapsed) * float64(size-read) / float64(read))
	return text + fmt.Sprintf(", %d%%, %v left", 100*read/size, left.Round(time.Second))
}
