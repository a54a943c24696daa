package redis

import (
	"cmp"
	"slices"
)

// A roster holds the subscribers to all channels, to all patterns or to all shard channels.
type roster struct {
	kind        kind
	subscribers map[string][]*conn // by channel or pattern; the connections are in the order of their subscriptions
	parsed      []*pattern         // patterns, in order of cost, then of first subscription; nil unless kind is ofPatterns
	watchCost   int                // see keyWatchCost; 0 if the store is local
	stale       int                // number of patterns in parsed without subscribers; see prune
}

func (r *roster) add(c *conn, name string) {
	if r.kind == ofPatterns && len(r.subscribers[name]) == 0 {
		p := parsePattern([]byte(name))
		after, _ := slices.BinarySearchFunc(r.parsed, p.Cost(1)+1, func(p *pattern, cost int) int { return cmp.Compare(p.Cost(1), cost) })
		r.parsed = slices.Insert(r.parsed, after, p)
	}
	r.subscribers[name] = append(r.subscribers[name], c)
}

// cost returns the estimated memory of a subscription, in bytes.
func (r *roster) cost(name []byte) int {
	if r.kind == ofPatterns {
		return nameCost + patternCost*len(name)
	}
	if key, _, _ := cutChannel(name); key != nil {
		return nameCost + len(name) + r.watchCost
	}
	return nameCost + len(name)
}

// remove removes a subscriber of a name, and reports whether the name has no subscribers left. The caller must
// then call prune.
func (r *roster) remove(c *conn, name string) (last bool) {
	rest := slices.DeleteFunc(r.subscribers[name], func(other *conn) bool { return other == c })
	if len(rest) > 0 {
		r.subscribers[name] = rest
		return false
	}
	delete(r.subscribers, name)
	if r.kind == ofPatterns {
		r.stale++
	}
	return true
}

// prune removes all patterns without subscribers in one pass.
func (r *roster) prune() {
	if r.stale == 0 {
		return
	}
	r.parsed = slices.DeleteFunc(r.parsed, func(p *pattern) bool {
		gone := r.stale > 0 && len(r.subscribers[p.text]) == 0
		if gone {
			r.stale--
		}
		return gone
	})
	r.stale = 0 // forget and endSubscriptions may both have counted the same pattern
}
