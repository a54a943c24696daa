package verbs

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/bulkread"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/format"
)

// sortOrder returns the comparison for name, a value of --sort. If name is empty, compare is nil,
// for the order of the store. known is false if name is invalid.
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

// wireVersion returns the version of a key, or the zero Version if the version is unknown.
func wireVersion(k format.LongKey) client.Version {
	v, _ := k.Version.(client.Version)
	return v
}

// values prints the keys for --long, --sort age and --sort size, which need the values of the keys.
// After an error for one key, it still prints the other keys.
func (f scanFlags) values(ctx context.Context, a *app.App, s *client.Session) error {
	store := bulkread.NewStore(a, s, a.Settings.Timeout)
	l := listing{app: a, long: f.long}
	compare, _ := sortOrder(f.sort)
	var found []format.LongKey
	err := store.Each(ctx, bulkread.Scan(f.pattern), l.flushAligned, func(e bulkread.Entry) error {
		if e.Err != nil {
			if err := l.flush(); err != nil {
				return err
			}
			a.Refuse(&l.refused, e.Err)
			return nil
		}
		if !e.Found {
			return nil
		}
		k := format.NewLongKey(e.Key, e.Value, app.Version(e.Version))
		if compare != nil {
			found = append(found, k)
			return nil
		}
		if err := l.add(k); err != nil {
			return err
		}
		if l.n == f.limit {
			return errLimit
		}
		return nil
	})
	if err != nil && err != errLimit {
		return errors.Join(l.flush(), err)
	}
	if compare != nil {
		slices.SortFunc(found, func(a, b format.LongKey) int { return cmp.Compare(a.Key, b.Key) })
		found = slices.CompactFunc(found, func(a, b format.LongKey) bool { return a.Key == b.Key })
		slices.SortStableFunc(found, compare)
		if f.limit > 0 {
			found = found[:min(f.limit, len(found))]
		}
		l.group, l.n = found, len(found)
	}
	if err := l.flush(); err != nil {
		return err
	}
	if l.n == 0 && l.refused == nil {
		f.informNone(a)
	}
	return l.refused
}

// errLimit ends values after --limit keys.
var errLimit = errors.New("the limit is reached")

// A listing prints keys. In the human form, the first group of keys sets the widths of the columns.
type listing struct {
	app      *app.App
	long     bool
	n        int
	measured bool             // the widths of the columns are set
	group    []format.LongKey // keys that are not printed yet
	refused  error            // the error of the first key that could not be read
}

// add adds a key to the group, and prints the group if it is full.
func (l *listing) add(k format.LongKey) error {
	l.n++
	if l.group = append(l.group, k); len(l.group) == bulkread.Window {
		return l.flush()
	}
	return nil
}

// flushAligned prints the group, except in the human form before the widths of the columns are set.
func (l *listing) flushAligned() error {
	if l.app.Output == "human" && !l.measured {
		return nil
	}
	return l.flush()
}

func (l *listing) flush() error {
	rows := make([]format.Row, len(l.group))
	for i, k := range l.group {
		rows[i] = k
		if !l.long {
			rows[i] = format.Key{Key: k.Key}
		}
	}
	if !l.measured && len(rows) > 0 {
		l.measured = true
		l.app.Out.Measure(rows...)
	}
	for _, row := range rows {
		if err := l.app.Queue(row); err != nil {
			return err
		}
	}
	l.group = l.group[:0]
	return l.app.Flush()
}
