package shell

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/complete"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// A keyMemory holds the keys that were named or seen in a shell, for completion.
type keyMemory map[string]bool

// maxRemembered limits the number of keys in a keyMemory.
const maxRemembered = 10_000

// add remembers a key, unless it is empty or too long, or there are too many.
func (m keyMemory) add(key string) {
	if key != "" && len(m) < maxRemembered && len(key) <= maxKept {
		m[key] = true
	}
}

// RememberKey implements [app.Shell]: it remembers keys for completion.
func (c *connection) RememberKey(keys ...string) {
	for _, key := range keys {
		c.keys.add(key)
	}
}

// with returns the remembered keys that begin with prefix.
func (m keyMemory) with(prefix string) []string {
	keys := slices.Sorted(maps.Keys(m))
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

// KeysWith implements [app.Shell]: it returns the keys that begin with prefix, both the keys seen
// so far and the store's, if it has SCAN.
func (c *connection) KeysWith(prefix string) (keys []string, all bool) {
	listed, all := c.scan(prefix)
	keys = append(c.keys.with(prefix), listed...)
	slices.Sort(keys)
	return slices.Compact(keys), all
}

// LocksWith implements [app.Shell]: it returns the locks that lines have named and that begin with
// prefix. If there are none, it returns keys, because any key may be a lock.
func (c *connection) LocksWith(prefix string) (names []string, all bool) {
	if found := c.locks.with(prefix); len(found) > 0 {
		return found, true
	}
	return c.KeysWith(prefix)
}

// scan asks the store for keys (protocol.md 9). If it cannot get a list, because there is no connection
// or no SCAN, all is true: the shell knows only the keys seen so far. Completion prints no errors.
func (c *connection) scan(prefix string) (keys []string, all bool) {
	if c.noScan || !c.up() {
		return nil, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), complete.Timeout)
	defer cancel()
	keys, all, err := complete.Scan(ctx, c.session, prefix)
	if fault.IsA[*wire.StoreError](err) {
		c.noScan = true
	}
	return keys, all || c.noScan
}
