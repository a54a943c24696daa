package shell

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/internal/wire"
)

// A keyMemory remembers keys for completion.
type keyMemory map[string]bool

// maxRemembered is the maximum number of keys in a keyMemory.
const maxRemembered = 10_000

// add adds a key, unless the key is empty or too long, or the memory is full.
func (m keyMemory) add(key string) {
	if key != "" && len(m) < maxRemembered && len(key) <= maxKept {
		m[key] = true
	}
}

// RememberKey implements [app.Shell].
func (c *connection) RememberKey(keys ...string) {
	for _, key := range keys {
		c.keys.add(key)
	}
}

func (m keyMemory) with(prefix string) []string {
	keys := slices.Sorted(maps.Keys(m))
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

// KeysWith implements [app.Shell]: it returns keys that begin with prefix, both remembered keys and, if
// the broker has SCAN, keys of the store. all is false if the store may have more.
func (c *connection) KeysWith(prefix string) (keys []string, all bool) {
	listed, all := c.scan(prefix)
	keys = append(c.keys.with(prefix), listed...)
	slices.Sort(keys)
	return slices.Compact(keys), all
}

// LocksWith implements [app.Shell]: it returns the remembered locks that begin with prefix. If there
// are none, it returns keys, because any key may be a lock.
func (c *connection) LocksWith(prefix string) (names []string, all bool) {
	if found := c.locks.with(prefix); len(found) > 0 {
		return found, true
	}
	return c.KeysWith(prefix)
}

// scan returns the keys of the store that begin with prefix (protocol.md 9). all is false if there may
// be more. Without a connection or SCAN, scan returns no keys, and all is true because nothing more can
// be listed. It returns no error, because completion prints none.
func (c *connection) scan(prefix string) (keys []string, all bool) {
	if c.noScan || !c.up() {
		return nil, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	keys, all, err := complete.Scan(ctx, c.session, prefix)
	if fault.IsA[*wire.StoreError](err) {
		c.noScan = true
	}
	return keys, all || c.noScan
}
