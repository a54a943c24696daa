package batch

import (
	"sync/atomic"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/signals"
	"github.com/sscli/sscli/format"
)

// A tally is what became of the lines of a batch so far.
type tally struct {
	lines atomic.Int64 // read by the progress display; only the reporting goroutine uses the rest

	result    format.BatchSummary
	first, no error // the first error, as an *exitError, and the last "no"
	last      int   // the line that was counted last
	ended     bool  // before the input did
	joined    bool  // the line counted last is in the last range of result.Ahead
}

// count takes a line; code is its error's exit code, 0 for a "no".
func (t *tally) count(line batchLine, code int, err error) {
	if code != 0 && t.first == nil {
		t.first = &fault.ExitError{Code: code, Err: err}
	}
	unknown := code == fault.CodeUnknown || fault.IsA[*fault.UnknownError](err)
	if line.number == 0 || fault.IsA[*signals.Interrupted](err) && !unknown {
		return // no line, or one that did not run
	}
	t.lines.Add(1)
	t.last = line.number
	switch {
	case err == errNothing:
		t.result.Skipped++
	case err == nil, fault.IsA[*fault.OutputError](err): // done, though nobody could be told
		t.result.Applied++
	case code == 0:
		t.no = err
		t.result.No++
	case unknown:
		t.result.Unknown++
	default:
		t.result.Refused++
	}
	ahead := t.result.Ahead
	switch {
	case !t.ended || code != 0 || err == errNothing:
		t.joined = false
	case t.joined:
		ahead[len(ahead)-1].Last = line.number
	default:
		t.result.Ahead = append(ahead, format.LineRange{First: line.number, Last: line.number})
		t.joined = true
	}
}

// end notes that the batch ends before its input, with this line or, if it has no
// number, behind the last one. The first call counts.
func (t *tally) end(line batchLine, from int) {
	if t.ended {
		return
	}
	t.ended = true
	if t.result.Resume = line.number; line.number == 0 {
		t.result.Resume = max(t.last+1, from)
	}
}

// summary of a batch that took so long.
func (t *tally) summary(elapsed time.Duration) format.BatchSummary {
	s := t.result
	s.Elapsed = elapsed
	return s
}
