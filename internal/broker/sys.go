package broker

import (
	"fmt"
	"strings"
	"time"
)

const sysPrefix = "$SYS/"

// sysInterval is the time between publications of the $SYS topics, while there are subscriptions to
// them.
const sysInterval = 10 * time.Second

// countSys counts a subscription to $SYS that was added (1) or removed (-1). It ignores other
// filters.
func (b *Broker) countSys(filter string, n int) {
	if _, rest, _, _ := splitShare(filter); !strings.HasPrefix(rest, "$SYS") {
		return
	}
	b.sysSubs += n
	switch {
	case b.sysSubs == 0:
		b.Cancel(b.sysTimer)
		b.sysTimer = nil
	case b.sysTimer == nil:
		b.sysTimer = b.At(b.Now().Add(sysInterval), b.publishSys)
	}
}

// publishSys publishes the $SYS topics and sets the timer for the next publication.
func (b *Broker) publishSys() {
	b.sysTimer = b.At(b.Now().Add(sysInterval), b.publishSys)
	for _, m := range b.refreshSys(sysPrefix) {
		b.publishUnawaited(m, nil)
	}
}

// The $SYS topics use the sequence numbers 0 to sysSequences-1.
const sysSequences = 16

// refreshSys updates the retained messages of the $SYS topics and returns them. If filter does not
// begin with $SYS, refreshSys does nothing. These messages are neither charged nor counted.
func (b *Broker) refreshSys(filter string) (messages []*message) {
	if !strings.HasPrefix(filter, "$SYS") {
		return nil
	}
	st := b.Stats()
	for i, v := range []struct {
		topic string
		value any
	}{
		{"version", b.opts.Version},
		{"uptime", fmt.Sprintf("%d seconds", b.Now().Sub(b.started)/time.Second)},
		{"clients/connected", st.Clients},
		{"clients/disconnected", st.Sessions - st.Clients},
		{"clients/total", st.Sessions},
		{"messages/received", st.MessagesReceived},
		{"messages/sent", st.MessagesSent},
		{"bytes/received", st.BytesReceived},
		{"bytes/sent", st.BytesSent},
		{"subscriptions/count", st.Subscriptions},
		{"retained messages/count", st.Retained},
	} {
		m := &message{topic: sysPrefix + "broker/" + v.topic, payload: fmt.Append(nil, v.value), retain: true, sequence: uint64(i)}
		m.kept = m
		b.tree.find(m.topic, true).retained = m
		messages = append(messages, m)
	}
	return messages
}
