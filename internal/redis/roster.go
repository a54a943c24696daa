package redis

import (
	"cmp"
	"slices"

	"github.com/sscli/sscli/internal/shrinkmap"
)

// A roster holds the subscribers to all channels, to all patterns or to all shard channels.
type roster struct {
	kind        kind
	subscribers shrinkmap.Map[string, []*conn] // by channel or pattern; the connections are in the order of their subscriptions
	parsed      []*pattern                     // patterns, in order of cost, then of first subscription; nil unless kind is ofPatterns
	watchCost   int                            // see keyWatchCost; 0 if the store is local
	steps       int                            // steps that all patterns together take for each byte of a channel
	listeners   int                            // number of subscriptions
	stale       int                            // number of patterns in parsed without subscribers; see prune
}

// add adds a subscriber. p is the parsed name if kind is ofPatterns.
func (r *roster) add(c *conn, name string, p *pattern) {
	if p != nil && len(r.subscribers.M[name]) == 0 {
		r.prune() // otherwise this pattern could be in parsed twice
		after, _ := slices.BinarySearchFunc(r.parsed, p.Cost(1)+1, func(p *pattern, cost int) int { return cmp.Compare(p.Cost(1), cost) })
		r.parsed = slices.Insert(r.parsed, after, p)
		r.steps += p.Cost(1)
	}
	r.listeners++
	r.subscribers.Set(name, append(r.subscribers.M[name], c))
}

// cost returns the estimated memory of a subscription, in bytes. p is the parsed name if kind is ofPatterns.
func (r *roster) cost(name []byte, p *pattern) int {
	if p != nil {
		return nameCost + len(name) + patternCost + p.Memory()
	}
	if key, _, _ := cutChannel(name); key != nil {
		return nameCost + len(name) + r.watchCost
	}
	return nameCost + len(name)
}

// remove removes a subscriber of a name, and reports whether the name has no subscribers left. The caller must
// then call prune.
func (r *roster) remove(c *conn, name string) (last bool) {
	all := len(r.subscribers.M[name])
	rest := slices.DeleteFunc(r.subscribers.M[name], func(other *conn) bool { return other == c })
	r.listeners -= all - len(rest)
	if len(rest) > 0 {
		r.subscribers.Set(name, rest)
		return false
	}
	r.subscribers.Delete(name)
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
		gone := r.stale > 0 && len(r.subscribers.M[p.text]) == 0
		if gone {
			r.stale--
			r.steps -= p.Cost(1)
		}
		return gone
	})
	r.stale = 0 // forget and endSubscriptions may both have counted the same pattern
}
