package broker

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"
)

// paho reads a packet with the decoder of paho.golang, the reference for ours: it must accept every packet
// that ours accepts, and decode it to the same. Ours is stricter.
func paho(t *testing.T, packet []byte) packets.Packet {
	t.Helper()
	cp, err := packets.ReadPacket(bytes.NewReader(packet))
	if err != nil {
		t.Fatalf("% x is not accepted by paho: %v", packet, err)
	}
	return cp.Content
}

// packetOf adds a fixed header to a body.
func packetOf(first byte, body []byte) []byte {
	packet := []byte{first}
	for n := len(body); ; n >>= 7 {
		if n < 0x80 {
			return append(append(packet, byte(n)), body...)
		}
		packet = append(packet, byte(n)|0x80)
	}
}

func same(t *testing.T, what string, paho, ours any) {
	t.Helper()
	if diff := cmp.Diff(paho, ours); diff != "" {
		t.Errorf("%s (-paho +ours):\n%s", what, diff)
	}
}

// wire returns paho's encoding of a packet without its fixed header.
func wire(f *testing.F, p interface {
	packets.Packet
}) []byte {
	f.Helper()
	var body []byte
	for _, part := range p.Buffers() {
		body = append(body, part...)
	}
	return body
}

func number[T any](v T) *T { return &v }

// text converts a decoded string to paho's type.
func text(b []byte) string { return string(b) }

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func FuzzConnect(f *testing.F) {
	full := &packets.Connect{
		ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: "id", CleanStart: true, KeepAlive: 9, UsernameFlag: true, Username: "u", PasswordFlag: true, Password: []byte("p"),
		WillFlag: true, WillQOS: 2, WillRetain: true, WillTopic: "w", WillMessage: []byte("m"), WillProperties: &packets.Properties{WillDelayInterval: number(uint32(5))},
		Properties: &packets.Properties{SessionExpiryInterval: number(uint32(7)), ReceiveMaximum: number(uint16(3)), MaximumPacketSize: number(uint32(99)),
			TopicAliasMaximum: number(uint16(4)), RequestProblemInfo: number(byte(0)), AuthMethod: "a", AuthData: []byte("d"), User: []packets.User{{Key: "k", Value: "v"}}},
	}
	f.Add(wire(f, full))
	f.Add([]byte("\x00\x04MQTT\x04\xc0\x00\x3c\x00\x01c\x00\x01u\x00\x01p"))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := decodeConnect(body)
		if err != nil || p.version != version5 {
			return
		}
		want := paho(t, packetOf(typeConnect<<4, body)).(*packets.Connect)
		same(t, "CONNECT", []any{want.ClientID, want.CleanStart, want.KeepAlive, want.WillFlag, want.WillQOS, want.WillRetain, want.WillTopic, want.UsernameFlag, want.Username},
			[]any{text(p.clientID), p.cleanStart, p.keepAlive, p.hasWill, p.willQoS, p.willRetain, text(p.willTopic), p.user != nil, text(p.user)})
		same(t, "binary data", []any{text(want.WillMessage), text(want.Password)}, []any{text(p.willBody), text(p.password)})
		q := want.Properties
		same(t, "properties", []any{value(q.SessionExpiryInterval), value(q.ReceiveMaximum), value(q.MaximumPacketSize), value(q.TopicAliasMaximum), q.AuthMethod, text(q.AuthData)},
			[]any{p.props.number(propSessionExpiry), uint16(p.props.number(propReceiveMaximum)), p.props.number(propMaximumPacket), uint16(p.props.number(propTopicAliasMax)), text(p.props.bytes(propAuthMethod)), text(p.props.bytes(propAuthData))})
		if p.hasWill {
			p.will()
		}
	})
}

func FuzzPublish(f *testing.F) {
	full := &packets.Publish{Topic: "t", QoS: 1, PacketID: 7, Payload: []byte("x"), Properties: &packets.Properties{
		PayloadFormat: number(byte(1)), MessageExpiry: number(uint32(9)), TopicAlias: number(uint16(2)), ContentType: "c", ResponseTopic: "r",
		CorrelationData: []byte("\xff"), User: []packets.User{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}},
	}}
	f.Add(byte(1), wire(f, full))
	f.Add(byte(0), []byte("\x00\x00\x03\x23\x00\x01x"))
	f.Add(byte(2), []byte("\x00\x01t\x00\x01\x0d\x23\x00\x01\x26\x00\x00\x00\x00\x02\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, qos byte, body []byte) {
		first := typePublish<<4 | qos%3<<1
		var p Publish
		if err := p.decode(version5, first, body, ""); err != nil {
			return
		}
		want := paho(t, packetOf(first, body)).(*packets.Publish)
		q := want.Properties
		same(t, "PUBLISH", []any{want.Topic, want.QoS, want.PacketID, text(want.Payload), q.ContentType, q.ResponseTopic, text(q.CorrelationData)},
			[]any{text(p.Topic), p.QoS, p.ID, text(p.Payload), text(p.props.bytes(propContentType)), text(p.ResponseTopic), text(p.Correlation)})
		same(t, "numbers", []any{value(q.MessageExpiry), value(q.TopicAlias)}, []any{p.props.number(propMessageExpiry), uint16(p.props.number(propTopicAlias))})
		var user []packets.User
		for name, v := range p.User() {
			user = append(user, packets.User{Key: text(name), Value: text(v)})
		}
		same(t, "user properties", q.User, user)

		// The rest is passed on, in order.
		passed := p.props.passedOn(nil)
		d := decoder{body: packetOf(0, passed)[1:]}
		var again properties
		if d.properties(&again, messageProperties); d.err != nil {
			t.Fatalf("what is passed on, % x: %v", passed, d.err)
		}
		var userAgain []packets.User
		for name, v := range (&Publish{props: again}).User() {
			userAgain = append(userAgain, packets.User{Key: text(name), Value: text(v)})
		}
		same(t, "passed on", []any{user, text(p.props.bytes(propContentType)), text(p.ResponseTopic), text(p.Correlation)},
			[]any{userAgain, text(again.bytes(propContentType)), text(again.bytes(propResponseTopic)), text(again.bytes(propCorrelation))})
		if again.seen != p.props.seen&^hopProperties {
			t.Errorf("%b is passed on of %b", again.seen, p.props.seen)
		}
	})
}

// FuzzPublishAgain decodes two PUBLISH packets into the same memory. The second result must have nothing of
// the first.
func FuzzPublishAgain(f *testing.F) {
	request := &packets.Publish{Topic: "t", QoS: 1, PacketID: 7, Payload: []byte("x"), Properties: &packets.Properties{
		MessageExpiry: number(uint32(9)), ResponseTopic: "r", CorrelationData: []byte("12"), User: []packets.User{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}},
	}}
	body := wire(f, request)
	for at := range body {
		f.Add(body, uint(at), byte(1))
		f.Add(body, uint(at), byte(0xFF))
	}
	f.Add([]byte("\x00\x01t\x00\x01\x02\x01\x00"), uint(0), byte(0)) // a property with a number
	describe := func(p *Publish) string {
		d := fmt.Sprintf("%+v", []any{p.ID, p.QoS, p.Retain, p.Topic, p.Payload, p.ResponseTopic, p.Correlation, p.Expiry, p.props.raw, p.props.seen})
		for kind := range byte(maxProperty + 1) {
			d += fmt.Sprintf(" %x", p.props.value(kind))
		}
		for name, value := range p.User() {
			d += fmt.Sprintf(" %q=%q", name, value)
		}
		return d
	}
	f.Fuzz(func(t *testing.T, body []byte, at uint, other byte) {
		const first = typePublish<<4 | 2
		var p Publish
		if len(body) == 0 || p.decode(version5, first, body, "") != nil {
			return
		}
		second := bytes.Clone(body)
		second[at%uint(len(body))] ^= other
		for _, next := range [][]byte{second, body, second} {
			var fresh Publish
			want := fresh.decode(version5, first, next, "")
			got := p.decode(version5, first, next, "")
			same(t, "error", want, got)
			if want != nil {
				return
			}
			same(t, "PUBLISH", describe(&fresh), describe(&p))
		}
	})
}

func FuzzAcknowledgement(f *testing.F) {
	f.Add(byte(typePuback), []byte("\x00\x01"))
	f.Add(byte(typePubrec), []byte("\x00\x01\x87"))
	f.Add(byte(typePubrel), []byte("\x00\x01\x92\x09\x1f\x00\x01s\x26\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		kind = typePuback + kind%4
		gotID, gotCode, err := decodeAck(version5, kind, body)
		if err != nil {
			return
		}
		first := kind << 4
		if kind == typePubrel {
			first |= 2
		}
		var id uint16
		var code byte
		switch want := paho(t, packetOf(first, body)).(type) {
		case *packets.Puback:
			id, code = want.PacketID, want.ReasonCode
		case *packets.Pubrec:
			id, code = want.PacketID, want.ReasonCode
		case *packets.Pubrel:
			id, code = want.PacketID, want.ReasonCode
		case *packets.Pubcomp:
			id, code = want.PacketID, want.ReasonCode
		}
		same(t, "acknowledgement", []any{id, code}, []any{gotID, gotCode})
	})
}

func FuzzSubscribe(f *testing.F) {
	f.Add(wire(f, &packets.Subscribe{PacketID: 3, Properties: &packets.Properties{SubscriptionIdentifier: number(200)}, Subscriptions: []packets.SubOptions{
		{Topic: "a/+", QoS: 2, NoLocal: true, RetainAsPublished: true, RetainHandling: 2}, {Topic: "$share/g/#", QoS: 1},
	}}))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := decodeSubscribe(typeSubscribe, version5, body)
		if err != nil {
			return
		}
		want := paho(t, packetOf(typeSubscribe<<4|2, body)).(*packets.Subscribe)
		var options []packets.SubOptions
		for _, r := range p.filters {
			options = append(options, packets.SubOptions{Topic: text(r.filter), QoS: r.qos, NoLocal: r.noLocal, RetainAsPublished: r.asPublished, RetainHandling: r.handling})
			if _, rest, _, ok := splitShare(text(r.filter)); ok && !validFilter(rest) {
				t.Errorf("%q is valid, with the filter %q", r.filter, rest)
			}
		}
		same(t, "SUBSCRIBE", []any{want.PacketID, value(want.Properties.SubscriptionIdentifier), want.Subscriptions}, []any{p.id, p.subscriptionID, options})
	})
}

func FuzzUnsubscribe(f *testing.F) {
	f.Add(wire(f, &packets.Unsubscribe{PacketID: 3, Properties: &packets.Properties{}, Topics: []string{"a", "b/#"}}))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := decodeSubscribe(typeUnsubscribe, version5, body)
		if err != nil {
			return
		}
		want := paho(t, packetOf(typeUnsubscribe<<4|2, body)).(*packets.Unsubscribe)
		var filters []string
		for _, r := range p.filters {
			filters = append(filters, text(r.filter))
		}
		same(t, "UNSUBSCRIBE", []any{want.PacketID, want.Topics}, []any{p.id, filters})
	})
}

func FuzzDisconnectAndAuth(f *testing.F) {
	f.Add([]byte("\x04\x05\x11\x00\x00\x00\x09"))
	f.Add([]byte("\x19\x09\x15\x00\x01m\x16\x00\x02dd"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if code, expiry, err := decodeDisconnect(version5, body); err == nil && len(body) > 0 {
			want := paho(t, packetOf(typeDisconnect<<4, body)).(*packets.Disconnect)
			same(t, "DISCONNECT", []any{want.ReasonCode, value(want.Properties.SessionExpiryInterval)}, []any{code, value(expiry)})
		}
		if code, method, data, err := decodeAuth(body); err == nil && len(body) > 0 {
			want := &packets.Auth{Properties: &packets.Properties{}}
			if err := want.Unpack(bytes.NewBuffer(body)); err != nil {
				t.Fatalf("AUTH % x: %v", body, err)
			}
			same(t, "AUTH", []any{want.ReasonCode, want.Properties.AuthMethod, text(want.Properties.AuthData)}, []any{code, text(method), text(data)})
		}
	})
}

// FuzzFilters: the tree finds the same as a comparison level by level.
func FuzzFilters(f *testing.F) {
	f.Add("a/b/c", "a/+/#", "#", "$a/+")
	f.Add("/", "/+", "+/", "+/+")
	f.Add("$SYS/x", "$SYS/#", "+/x", "#")
	f.Fuzz(func(t *testing.T, topic, first, second, third string) {
		if !validTopic([]byte(topic)) {
			return
		}
		var tree node
		want := map[string]bool{}
		for _, filter := range []string{first, second, third} {
			if !validFilter(filter) {
				continue
			}
			tree.find(filter, true).groups = map[string]*group{filter: {name: filter}}
			if matches(filter, topic) {
				want[filter] = true
			}
		}
		got := map[string]bool{}
		tree.match(topic, func(n *node) {
			for _, g := range n.groups {
				got[g.name] = true
			}
		}, func() bool { return true })
		same(t, "filters of "+topic, want, got)

		// A filter finds the retained messages whose topics it matches.
		var retained node
		retained.find(topic, true).retained = &message{topic: topic}
		for _, filter := range []string{first, second, third} {
			if !validFilter(filter) {
				continue
			}
			found := false
			retained.collect(filter, true, func(n *node) { found = found || n.retained != nil }, func() {})
			if found != matches(filter, topic) {
				t.Errorf("%q finds %q: %t", filter, topic, !matches(filter, topic))
			}
		}
		retained.find(topic, true).retained = nil
		retained.find(topic, true).prune()
		if len(retained.children.M) > 0 {
			t.Errorf("%q leaves nodes", topic)
		}
	})
}

// matches implements MQTT 5, 4.7, as simply as possible.
func matches(filter, topic string) bool {
	if topic[0] == '$' && (filter[0] == '+' || filter[0] == '#') {
		return false
	}
	for {
		level, filterRest, filterMore := strings.Cut(filter, "/")
		if level == "#" {
			return true
		}
		name, topicRest, topicMore := strings.Cut(topic, "/")
		if level != "+" && level != name {
			return false
		}
		switch {
		case !filterMore:
			return !topicMore
		case !topicMore:
			return filterRest == "#"
		}
		filter, topic = filterRest, topicRest
	}
}

// FuzzInflight: packet identifiers are free, found and released correctly, even after the numbers wrap to 1.
func FuzzInflight(f *testing.F) {
	f.Add(uint16(0), []byte{0, 0, 1, 2, 0, 1})
	f.Add(uint16(65530), bytes.Repeat([]byte{0, 0, 0, 9, 1, 3}, 30))
	f.Fuzz(func(t *testing.T, start uint16, ops []byte) {
		w := inflight{places: places{lo: uint64(start), hi: uint64(start)}, again: uint64(start)}
		model := map[uint16]int{}
		var order []uint16
		for i, op := range ops {
			if op%2 == 0 && !w.full() {
				id := w.add(waiting{ids: slot(i + 1)})
				if _, taken := model[id]; taken || id == 0 {
					t.Fatalf("packet id %d is given again", id)
				}
				model[id] = i
				order = append(order, id)
				continue
			}
			if len(order) == 0 {
				continue
			}
			n := int(op/2) % len(order)
			id := order[n]
			order = append(order[:n], order[n+1:]...)
			place, found := w.find(id)
			if !found || w.at(place).ids != slot(model[id]+1) {
				t.Fatalf("packet id %d: %t", id, found)
			}
			w.finish(place)
			delete(model, id)
			if _, found := w.find(id); found {
				t.Errorf("packet id %d is found after its end", id)
			}
		}
		if w.count != len(model) || w.lo > w.hi || w.again < w.lo || w.again > w.hi {
			t.Errorf("%d of %d, from %d to %d, again %d", w.count, len(model), w.lo, w.hi, w.again)
		}
	})
}

// TestInflightWithGaps: deliveries that are never acknowledged keep their identifiers, and block no others.
func TestInflightWithGaps(t *testing.T) {
	t.Parallel()
	var w inflight
	stuck := map[uint16]int{}
	for i := range 200_000 {
		if w.full() {
			t.Fatalf("inflight is full with %d deliveries", w.count)
		}
		id := w.add(waiting{ids: slot(i + 1)})
		if _, taken := stuck[id]; taken || id == 0 {
			t.Fatalf("packet id %d is given again", id)
		}
		if i%30_000 == 0 {
			stuck[id] = i
			continue
		}
		place, found := w.find(id)
		if !found || w.at(place).ids != slot(i+1) {
			t.Fatalf("packet id %d is not found", id)
		}
		w.finish(place)
	}
	for id, i := range stuck {
		if place, found := w.find(id); !found || w.at(place).ids != slot(i+1) {
			t.Errorf("packet id %d: %t", id, found)
		} else {
			w.finish(place)
		}
	}
	if w.count != 0 || w.lo != w.hi {
		t.Errorf("%d are left", w.count)
	}
	for range identifiers {
		w.add(waiting{})
	}
	if !w.full() {
		t.Error("all identifiers are in use, and there is another")
	}
}

// TestInflightBursts: bursts of the same size need no memory, and a client that sends little after a burst keeps little.
func TestInflightBursts(t *testing.T) {
	var w inflight
	burst := func(n int) {
		for range n {
			w.add(waiting{})
		}
		for w.lo < w.hi {
			w.finish(w.lo)
		}
	}
	burst(256)
	if n := testing.AllocsPerRun(100, func() { burst(256) }); n > 0 {
		t.Errorf("each burst allocates memory, %v times", n)
	}
	if burst(1); w.cost() > 2*firstPlaces*waitingSize {
		t.Errorf("%d bytes are kept for one message", w.cost())
	}
}

// TestPlacesGrow: a queue that grows leaves little garbage, and keeps little when it is short again.
func TestPlacesGrow(t *testing.T) {
	var p places
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100_000 {
		p.push(waiting{})
	}
	runtime.ReadMemStats(&after)
	if got := int(after.TotalAlloc - before.TotalAlloc); got > p.cost()*11/10 {
		t.Errorf("%d bytes allocated for %d", got, p.cost())
	}
	for p.len() > 3 {
		p.removeFirst()
	}
	if p.cost() > 2*blockPlaces*waitingSize {
		t.Errorf("%d bytes are kept for %d deliveries", p.cost(), p.len())
	}
}

// FuzzPlaces compares places with a slice.
func FuzzPlaces(f *testing.F) {
	f.Add(uint16(0), []byte{255, 255, 128, 255, 127, 1})
	f.Add(uint16(500), []byte{20, 150, 255, 255, 255, 200, 10})
	f.Fuzz(func(t *testing.T, start uint16, steps []byte) {
		p := places{lo: uint64(start), hi: uint64(start)}
		var model []slot
		for i, step := range steps {
			for n := range int(step%128) * 8 {
				if step < 128 {
					added := slot(i<<16 + n)
					p.push(waiting{msg: added})
					model = append(model, added)
				} else if len(model) > 0 {
					p.removeFirst()
					model = model[1:]
				}
			}
			if p.shrink(64); p.len() != len(model) || p.hi-p.lo != uint64(len(model)) {
				t.Fatalf("%d deliveries, want %d", p.len(), len(model))
			}
			for n, want := range model {
				if got := p.at(p.lo + uint64(n)).msg; got != want {
					t.Fatalf("after step %d, delivery %d is %d, want %d", i, n, got, want)
				}
			}
		}
	})
}

// TestRoutesBounded: the cache of published topics has a limit.
func TestRoutesBounded(t *testing.T) {
	t.Parallel()
	b := New(Options{})
	defer b.Close()
	b.Lock()
	defer b.Unlock()
	topic := bytes.Repeat([]byte("x"), 60_000)
	for i := range 3000 {
		topic[0], topic[1] = 'a'+byte(i%26), 'a'+byte(i/26)
		b.route(topic)
		kept := 0
		for name := range b.routes {
			kept += len(name)
		}
		if kept > maxRouteBytes+len(topic) {
			t.Fatalf("%d bytes after %d topics", kept, i+1)
		}
	}
}
