package broker

import (
	"strconv"
	"strings"
	"time"
)

const sysPrefix = "$SYS/"

// sysInterval is the time between two publications of the $SYS topics, which happen only while a
// client is subscribed to one.
const sysInterval = 10 * time.Second

// countSys counts a subscription to $SYS that was added (1) or removed (-1). It ignores other filters.
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

// publishSys publishes the $SYS topics, and does so again after sysInterval.
func (b *Broker) publishSys() {
	b.sysTimer = b.At(b.Now().Add(sysInterval), b.publishSys)
	b.refreshSys(sysPrefix)
	for _, m := range b.tree.retainedFor("$SYS/#") {
		b.fanOut(m, b.route([]byte(m.topic)), nil)
	}
}

// refreshSys updates the retained messages of the $SYS topics for a new subscription, if its filter
// is one of $SYS. These messages are not charged or counted.
func (b *Broker) refreshSys(filter string) {
	if !strings.HasPrefix(filter, "$SYS") {
		return
	}
	st := b.Stats()
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	count := func(n int) string { return strconv.Itoa(n) }
	for i, v := range []struct{ topic, value string }{
		{"version", b.opts.Version},
		{"uptime", count(int(b.Now().Sub(b.started)/time.Second)) + " seconds"},
		{"clients/connected", count(st.Clients)},
		{"clients/disconnected", count(st.Sessions - st.Clients)},
		{"clients/total", count(st.Sessions)},
		{"messages/received", number(st.MessagesReceived)},
		{"messages/sent", number(st.MessagesSent)},
		{"bytes/received", number(st.BytesReceived)},
		{"bytes/sent", number(st.BytesSent)},
		{"subscriptions/count", count(st.Subscriptions)},
		{"retained messages/count", count(st.Retained)},
	} {
		m := &message{topic: sysPrefix + "broker/" + v.topic, payload: []byte(v.value), retain: true, sequence: uint64(i)}
		m.kept = m
		b.tree.find(m.topic, true).retained = m
	}
}
