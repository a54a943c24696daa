package shell

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/sscli/sscli/client"
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
// so far and one page of the store's, if it has SCAN.
func (c *connection) KeysWith(prefix string) []string {
	found := append(c.keys.with(prefix), c.scan(prefix)...)
	found = slices.DeleteFunc(found, func(key string) bool { return !strings.HasPrefix(key, prefix) })
	slices.Sort(found)
	return slices.Compact(found)
}

// LocksWith implements [app.Shell]: it returns the locks that begin with prefix and were named in this
// shell. If there are none it returns keys, because any key may be a lock.
func (c *connection) LocksWith(prefix string) []string {
	if found := c.locks.with(prefix); len(found) > 0 {
		return found
	}
	return c.KeysWith(prefix)
}

// scan asks the store for one page of keys (protocol.md 9), and returns none if there is an
// error: completion prints no errors.
func (c *connection) scan(prefix string) []string {
	if c.noScan || !c.up() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), complete.Timeout)
	defer cancel()
	if i := strings.IndexAny(prefix, `*?[\`); i >= 0 {
		prefix = prefix[:i]
	}
	r, err := c.session.Do(ctx, client.Scan(prefix+"*", nil))
	if fault.IsA[*wire.StoreError](err) {
		c.noScan = true
	}
	if err != nil {
		return nil
	}
	return r.(client.ScanResult).Keys
}
