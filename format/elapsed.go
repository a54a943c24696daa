package format

import (
	"strconv"
	"time"
)

// Elapsed is the time that a command took, for standard error.
type Elapsed struct {
	Took time.Duration
}

func (e Elapsed) fields() object {
	return object{{"op", "time"}, {"elapsed_ms", milliseconds(e.Took)}}
}

func (e Elapsed) human(dst []byte, s *style) []byte {
	return append(append(dst, s.faint.Sprint("took "+seconds(e.Took))...), '\n')
}

func (e Elapsed) raw(dst []byte) []byte {
	return append(append(append(dst, "time\t"...), seconds(e.Took)...), '\n')
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + "s"
}
