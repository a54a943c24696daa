package batch

import (
	"bytes"
	"context"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/lineinput"
)

// A lookup is the GET of a key that a line with a version is about to set.
type lookup struct {
	value   []byte         // of the line
	version client.Version // of the line
	get     *client.InFlight
}

// lookUp passes lines on, and sends a GET for each line that has a version. For each line, lookups
// gets a lookup first, nil if there is no GET. lines is closed after the last line, but not when ctx
// ends before. ended is closed when nothing is sent any more.
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
					l.get, _ = pipe.Send(ctx, client.Get(e.Key)) // without a reply, nothing is known
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

// known reports whether the reply to the GET has arrived, or none is to be expected.
func (l *lookup) known() bool { return l == nil || l.get == nil || l.get.Over() }

// newer returns the version of the stored value if it is newer than the line and differs from it,
// otherwise the zero version.
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

// countNewer counts a newer value that a line has overwritten. A value that the import itself wrote
// does not count: its version is not below the version of the first write.
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
