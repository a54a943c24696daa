package batch

import (
	"bytes"
	"context"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
)

// A lookup is a GET that shows whether a line overwrites a newer value.
type lookup struct {
	value   []byte           // the value on the line
	version client.Version   // the version on the line
	get     *client.InFlight // nil if it could not be sent
}

// lookUp copies lines from in to the channel that it returns, and sends a GET for each line that has a
// version. Before each line it sends a lookup, which is nil if there is no GET. It closes the channel
// of lines after the last line, unless ctx ends first, and closes ended when its goroutine ends.
func (b *batch) lookUp(ctx context.Context, in <-chan lineinput.Line) (_ <-chan lineinput.Line, _ <-chan *lookup, ended <-chan struct{}) {
	lines, lookups := make(chan lineinput.Line, b.flags.Inflight), make(chan *lookup, b.flags.Inflight+1)
	pipe := b.session.Pipeline(b.flags.Inflight)
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer close(lookups)
		for {
			line, ok := lineinput.Next(ctx, in)
			if !ok {
				close(lines)
				return
			}
			var l *lookup
			if e, err := lineinput.ParseEntry(line.Text); err == nil && line.Err == nil && e.Found {
				if version, err := client.ParseVersion(e.Version); err == nil {
					l = &lookup{value: e.Value, version: version}
					l.get, _ = pipe.Send(ctx, client.Get(e.Key)) // after an error, the line is not counted
				}
			}
			select {
			case lookups <- l:
			case <-ctx.Done():
				return
			}
			select {
			case lines <- line:
			case <-ctx.Done():
				return
			}
			if line.End {
				return
			}
		}
	}()
	return lines, lookups, over
}

// over reports whether the reply to the GET has arrived, or will not come.
func (l *lookup) over() bool { return l == nil || l.get == nil || l.get.Over() }

// newer returns the version of the stored value, if it is newer than the version on the line and the
// values differ. Otherwise it returns the zero version.
func (l *lookup) newer() client.Version {
	if l == nil || l.get == nil {
		return client.Version{}
	}
	reply, err := l.get.Wait()
	stored, ok := reply.(client.GetResult)
	if err != nil || !ok || !stored.Found || stored.Version.Compare(l.version) <= 0 || bytes.Equal(stored.Value, l.value) {
		return client.Version{}
	}
	return stored.Version
}

// countNewer counts a newer value that a line has overwritten. It does not count a value that an
// earlier line has written: such a value is at least as new as the first write.
func (p *pipeline) countNewer(replaced client.Version, reply client.Result) {
	r, ok := reply.(client.SetResult)
	if !ok || !r.Applied {
		return
	}
	if p.firstWrite.IsZero() {
		p.firstWrite = r.Version
	}
	if !replaced.IsZero() && replaced.Compare(p.firstWrite) < 0 {
		p.summary.result.Newer++
	}
}
