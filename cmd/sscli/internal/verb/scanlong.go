package verb

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/cli"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/entries"
	"github.com/sscli/sscli/cmd/sscli/internal/explain"
	"github.com/sscli/sscli/format"
)

// sortOrder returns how --sort compares keys; nil for the order of the store. known is false
// if there is no such order.
func sortOrder(name config.Text) (compare func(a, b format.LongKey) int, known bool) {
	switch name {
	case "":
		return nil, true
	case "key":
		return func(a, b format.LongKey) int { return cmp.Compare(a.Key, b.Key) }, true
	case "size":
		return func(a, b format.LongKey) int { return cmp.Compare(b.Size, a.Size) }, true
	case "age":
		return func(a, b format.LongKey) int { return wireVersion(b).Compare(wireVersion(a)) }, true
	}
	return nil, false
}

// wireVersion returns the version of a key; the zero Version if it is not known.
func wireVersion(k format.LongKey) client.Version {
	v, _ := k.Version.(client.Version)
	return v
}

// values prints the keys with what is known of their values, or sorted by that. A key that
// cannot be read is an error, and the others are still printed.
func (f scanFlags) values(ctx context.Context, a *cli.App, s *client.Session) error {
	r := entries.Read(ctx, s, ScanKeys(f.pattern), entries.Options{
		Timeout: cmp.Or(a.Settings.Timeout, client.DefaultTimeout),
		Trouble: func(err error) { a.Warn(explain.Message(err)+"; connecting again", "") },
	})
	defer r.Close()
	l := listing{app: a, long: f.long, limit: f.limit}
	compare, _ := sortOrder(f.sort)
	var found []format.LongKey
	for {
		if a.Output != "human" && !r.Ready() || len(l.group) == entries.Window {
			if err := l.flush(); err != nil {
				return err
			}
		}
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return errors.Join(l.flush(), ReadError(e, err))
		}
		if e.Err != nil {
			if err := l.flush(); err != nil {
				return err
			}
			code := a.Fault(explain.Describe(client.Get(e.Key), e.Err))
			if l.refused == nil {
				l.refused = &explain.ExitError{Code: code, Err: e.Err}
			}
			continue
		}
		if !e.Found {
			continue
		}
		k := format.NewLongKey(e.Key, e.Value, cli.Version(e.Version))
		if compare != nil {
			found = append(found, k)
		} else if l.add(k); l.n == f.limit {
			break
		}
	}
	if compare != nil {
		slices.SortFunc(found, func(a, b format.LongKey) int { return cmp.Compare(a.Key, b.Key) })
		found = slices.CompactFunc(found, func(a, b format.LongKey) bool { return a.Key == b.Key })
		slices.SortStableFunc(found, compare)
		for _, k := range found {
			if l.add(k); l.n == f.limit {
				break
			}
		}
	}
	if err := l.flush(); err != nil {
		return err
	}
	if l.refused != nil {
		return l.refused
	}
	return nil
}

// A listing prints keys in groups, each aligned with those before it. In the human form a group
// is a window of keys, so that their columns align; else it is what has arrived.
type listing struct {
	app     *cli.App
	long    bool
	limit   int
	n       int
	width   int // of the column with the keys
	group   []format.LongKey
	refused *explain.ExitError // of the first key that could not be read
}

func (l *listing) add(k format.LongKey) {
	l.n++
	l.group = append(l.group, k)
}

// flush prints the group.
func (l *listing) flush() error {
	const widest = 40 // a few long keys must not push everything to the right
	for _, k := range l.group {
		l.width = max(l.width, min(utf8.RuneCountInString(format.Word(k.Key)), widest))
	}
	for i, k := range l.group {
		k.Width = l.width
		var line format.Result = k
		if !l.long {
			line = format.Key{N: l.n - len(l.group) + i + 1, Key: k.Key}
		}
		if err := l.app.Queue(line); err != nil {
			return err
		}
	}
	l.group = l.group[:0]
	return l.app.Flush()
}
