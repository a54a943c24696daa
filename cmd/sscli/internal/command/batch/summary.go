package batch

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/format"
)

// A summary counts the outcomes of a batch's lines.
type summary struct {
	lines atomic.Int64 // number of counted lines; the only field that the progress goroutine reads

	result format.BatchSummary
	first  error // the first error, a *fault.ExitError
	no     error // the last "no"
	last   int   // number of the line that was counted last
	ended  bool  // the batch ended before the end of its input
	joined bool  // the line counted last is in the last range of result.Ahead
}

// count counts a line. code is the exit code of err, or 0 if err is nil, a "no" or errNothing.
func (s *summary) count(line lineinput.Line, code int, err error) {
	if code != 0 && s.first == nil {
		s.first = &fault.ExitError{Code: code, Err: err}
	}
	unknown := code == fault.CodeUnknown || fault.IsA[*fault.UnknownError](err)
	if line.Number == 0 || fault.IsA[*signals.Interrupted](err) && !unknown {
		return // not a line, or a line that did not run
	}
	s.lines.Add(1)
	s.last = line.Number
	switch {
	case err == errNothing:
		s.result.Skipped++
	case err == nil, fault.IsA[*fault.OutputError](err): // done, but its result could not be printed
		s.result.Applied++
	case code == 0:
		s.no = err
		s.result.No++
	case unknown:
		s.result.Unknown++
	default:
		s.result.Refused++
	}
	ahead := s.result.Ahead
	switch {
	case !s.ended || code != 0 || err == errNothing:
		s.joined = false
	case s.joined:
		ahead[len(ahead)-1].Last = line.Number
	default:
		s.result.Ahead = append(ahead, format.LineRange{First: line.Number, Last: line.Number})
		s.joined = true
	}
}

// end records that the batch ended before the end of its input, and the line to continue from: line
// itself or, if line has no number, the line after the last counted line, but at least from. Only
// the first call has an effect.
func (s *summary) end(line lineinput.Line, from int) {
	if s.ended {
		return
	}
	s.ended = true
	if s.result.Resume = line.Number; line.Number == 0 {
		s.result.Resume = max(s.last+1, from)
	}
}

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
