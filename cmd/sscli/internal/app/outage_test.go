package app

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/format"
)

// TestOutage: one line when the broker goes away, at most one line every ten seconds while requests fail, and one when
// the broker answers again. Each line shows the time.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		faults, err := format.New(&out, format.Options{Output: "raw"})
		if err != nil {
			t.Fatal(err)
		}
		o := Outage{Notify: func(n format.Note) { _ = faults.Print(n) }}
		o.Over(", all is well") // there was no outage
		o.Still("waiting")
		for range 25 { // one loop a second
			o.Trouble(errors.New("connection refused"), "trying again")
			time.Sleep(time.Second)
		}
		time.Sleep(OutageInterval)
		o.note(nil)
		o.note(errors.New("no such host"))
		o.Still("waiting")
		o.Still("waiting")
		o.Over(", all is well")
		o.Over(", all is well")
		if o.Away() {
			t.Error("the broker is still away")
		}
		want := []string{
			"warning: 2000-01-01T00:00:00.000Z connection refused; trying again",
			"warning: 2000-01-01T00:00:10.000Z the broker has not answered for 10s: connection refused; trying again",
			"warning: 2000-01-01T00:00:20.000Z the broker has not answered for 20s: connection refused; trying again",
			"warning: 2000-01-01T00:00:35.000Z the broker has not answered for 35s: no such host; waiting",
			"2000-01-01T00:00:35.000Z the broker answers again after 35s, all is well",
		}
		if got := strings.ReplaceAll(out.String(), "sscli: ", ""); got != strings.Join(want, "\n")+"\n" {
			t.Errorf("got\n%swant\n%s", got, strings.Join(want, "\n"))
		}
		o = Outage{} // the zero value reports nothing
		o.Trouble(errors.New("connection refused"), "trying again")
		o.Over("")
	})
}
