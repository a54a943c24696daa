package format

import (
	"strconv"
	"time"
)

// Elapsed is the time that a command took, for standard error.
type Elapsed struct {
	Took time.Duration `json:"elapsed_ms"`
}

func (Elapsed) diagnostic() {}

func (e Elapsed) fields(o *objectWriter) { o.result("time", e) }

func (e Elapsed) human(w *writer) { w.print(w.faint.Sprint("took "+seconds(e.Took)), "\n") }

func (e Elapsed) raw(w *writer) { w.record("time", seconds(e.Took)) }

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + "s"
}
