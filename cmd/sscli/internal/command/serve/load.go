package serve

import (
	"context"
	"fmt"
	"iter"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/sources"
	"github.com/sscli/sscli/emulator"
)

// seeds returns the keys of --load, or nil without --load.
func (f *serveFlags) seeds(ctx context.Context, a *app.App) (iter.Seq2[emulator.Seed, error], error) {
	if len(f.load) == 0 {
		return nil, nil
	}
	seeds, err := seedsOf(ctx, f.load, sources.Options{Stdin: a.ReadKeys})
	if usage, ok := err.(*fault.UsageError); ok {
		usage.Err = fmt.Errorf("--load: %w", usage.Err)
	}
	return seeds, err
}

func seedsOf(ctx context.Context, names []string, o sources.Options) (iter.Seq2[emulator.Seed, error], error) {
	set, err := sources.Open(ctx, names, o)
	if err != nil {
		return nil, err
	}
	return func(yield func(emulator.Seed, error) bool) {
		for e, err := range set.Entries(ctx) {
			if err == nil && !e.Found {
				continue // the key was missing at the time of the export
			}
			var value []byte
			if err == nil {
				value, err = e.Load(nil)
			}
			if !yield(emulator.Seed{Key: e.Key, Value: value, TTL: e.Options.TTL, Persist: e.Options.Persist}, err) {
				return
			}
		}
	}, nil
}
