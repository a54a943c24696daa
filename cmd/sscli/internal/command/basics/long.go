package basics

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/exchange"
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
		return func(a, b format.LongKey) int { return b.Version.Compare(a.Version) }, true
	}
	return nil, false
}

// values prints the keys for --long, --sort age and --sort size, which need the values of the keys.
// After an error for one key, it still prints the other keys.
func (f scanFlags) values(ctx context.Context, a *app.App, s *client.Session) error {
	store := exchange.NewBulk(a, s)
	table := a.NewTable(exchange.MaxInFlight)
	add := func(k format.LongKey) error {
		if f.long {
			return table.Add(k)
		}
		return table.Add(format.Key{Key: k.Key})
	}
	compare, _ := sortOrder(f.sort)
	var found []format.LongKey // the keys to sort
	n := 0                     // how many keys are printed
	var refused error          // the error of the first key that could not be read
	err := store.Each(ctx, exchange.Scan(f.pattern), a.Flush, func(e exchange.Entry) error {
		if e.Err != nil {
			if err := table.Flush(); err != nil {
				return err
			}
			a.Refuse(&refused, e.Err)
			return nil
		}
		if !e.Found {
			return nil
		}
		k := format.NewLongKey(e.Key, e.Value, e.Version)
		if compare != nil {
			found = append(found, k)
			return nil
		}
		if n++; n == f.limit {
			return cmp.Or(add(k), errLimit)
		}
		return add(k)
	})
	if err != nil && err != errLimit {
		return errors.Join(table.Flush(), err)
	}
	if compare != nil {
		slices.SortFunc(found, func(a, b format.LongKey) int { return cmp.Compare(a.Key, b.Key) })
		found = slices.CompactFunc(found, func(a, b format.LongKey) bool { return a.Key == b.Key })
		slices.SortStableFunc(found, compare)
		if f.limit > 0 {
			found = found[:min(f.limit, len(found))]
		}
		n = len(found)
		table = a.NewTable(n)
		for _, k := range found {
			if err := add(k); err != nil {
				return err
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if n == 0 && refused == nil {
		f.informNone(a)
	}
	return refused
}

// errLimit ends values after --limit keys.
var errLimit = errors.New("the limit is reached")
