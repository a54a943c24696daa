package batch

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// showProgress shows the progress of the batch until end is called, unless results are printed on the
// terminal or lines are typed there.
func (b *batch) showProgress(source io.Reader) (end func()) {
	a := b.app
	file, isFile := source.(*os.File)
	if term.IsTerminal(int(a.Stdout.Fd())) && !b.flags.silent || isFile && term.IsTerminal(int(file.Fd())) {
		return func() {}
	}
	size := int64(0)
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() { // Stat fails if source is not a file
		size = info.Size()
	}
	begun := time.Now()
	above, stop := a.Live(200*time.Millisecond, func() string {
		read := int64(0)
		if size > 0 {
			read, _ = file.Seek(0, io.SeekCurrent)
		}
		return progressText(b.summary.lines.Load(), time.Since(begun), read, size)
	})
	b.stderr = above
	return func() {
		stop()
		b.stderr = a.Stderr
	}
}

// progressText returns the text of the progress line. read is the number of bytes read, and size is the
// size of the input, or 0 if the size is unknown.
func progressText(lines int64, elapsed time.Duration, read, size int64) string {
	text := fmt.Sprintf("%d lines, %.0f/s", lines, float64(lines)/elapsed.Seconds())
	if size <= 0 || read <= 0 {
		return text
	}
	read = min(read, size)
	left := time.Duration(float64(elapsed) * float64(size-read) / float64(read))
	return text + fmt.Sprintf(", %d%%, %v left", 100*read/size, left.Round(time.Second))
}
