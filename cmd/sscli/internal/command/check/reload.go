package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
)

// reloaded waits for a SIGHUP after which the file of the checks is right, and returns its views. They are nil when ctx
// ends.
func (m *monitor) reloaded(ctx context.Context) ([]*view, []*app.App) {
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-m.hangup:
		}
		views, apps, err := m.load()
		if err == nil {
			return views, apps
		}
		m.warn(fmt.Sprintf("the checks stay as they were: %v", err))
	}
}

// adopt takes over what is known of the broker and of the keys that the checks read before.
func (v *view) adopt(from []*view) {
	i := slices.IndexFunc(from, func(old *view) bool { return old.context == v.context })
	if i < 0 {
		return
	}
	old := from[i]
	drift := v.broker.drift
	v.broker = old.broker
	v.broker.drift = drift
	for s, k := range old.seen {
		k.read = false // the conditions may be others
		v.before[s.id()] = k
	}
	for s := range v.seen {
		if k := v.before[s.id()]; k != nil {
			v.seen[s] = k
		}
	}
}

func (m *monitor) remember() {
	if m.state == "" {
		return
	}
	past, err := readHistory(m.state)
	if err != nil {
		m.warn(fmt.Sprintf("--state: %v", err))
	}
	for _, v := range m.views {
		v.mu.Lock()
		v.past, v.broker.lost = past, err
		v.mu.Unlock()
	}
}

// keep writes what the views saw to the file of --state, which may have checks of others, too. A file that cannot be
// read is left as it is. Once it can be, what is seen from then on counts.
func (m *monitor) keep(ctx context.Context) {
	if m.state == "" {
		return
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer cancel()
	unlock, err := lockHistory(limited, m.state)
	if err == nil {
		defer unlock()
	}
	past, lost := readHistory(m.state)
	for _, v := range m.views {
		v.mu.Lock()
		v.broker.lost = lost
		for s, k := range v.seen {
			if k.known {
				past.keep(s, k, k.looked)
			}
		}
		for _, s := range v.specs {
			past.forget(s, v.found[s])
		}
		v.mu.Unlock()
	}
	if err = cmp.Or(err, lost); err == nil {
		err = past.write(m.state)
	}
	if err != nil {
		m.log("--state: %v", err)
	}
}
