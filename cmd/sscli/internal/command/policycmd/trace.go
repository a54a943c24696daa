package policycmd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/wire"
)

// A trace reads the packets of --trace-file in JSON, and gives seen what the client did at its end, because the broker's
// answer to a packet comes after it.
type trace struct {
	seen *seen
	who  policy.Principal
	all  []*attempt
	from int // index in all of the last CONNECT

	// Attempts without an answer.
	acks    map[ack][]*attempt
	replies map[string][]*attempt // by correlation data
}

// An ack says which packet of a connection the broker answers.
type ack struct {
	packet string
	id     int
}

// An attempt is what the client needs for a packet or, of SUBSCRIBE, for one filter.
type attempt struct {
	deeds   []policy.Deed
	refused bool
}

// try adds an attempt for a packet.
func (t *trace) try(p *packet, deeds ...policy.Deed) *attempt {
	a, answer := &attempt{deeds: deeds}, ack{p.Packet, p.ID}
	t.all = append(t.all, a)
	t.acks[answer] = append(t.acks[answer], a)
	return a
}

// end adds what was not refused.
func (t *trace) end() {
	for _, a := range t.all {
		if a.refused {
			t.seen.refused++
			t.seen.without = append(t.seen.without, a.deeds...)
		} else {
			t.seen.note(a.deeds...)
		}
	}
}

// A packet is a line of a trace: the members of [format.Packet] that say what was done.
type packet struct {
	Op, Packet, Client, User, Topic, Correlation, Payload string

	Sent          bool
	ID            int
	Filters       []string
	Codes         []int
	ResponseTopic string            `json:"response_topic"`
	Words         []json.RawMessage // strings, or objects with base64
}

// received reads what the broker sent.
func (t *trace) received(p *packet) {
	var attempts []*attempt
	switch p.Packet {
	case "CONNACK":
		attempts = t.all[t.from:] // SUBSCRIBE may have been sent with CONNECT
		p.Codes = slices.Repeat(p.Codes, len(attempts))
	case "SUBACK", "PUBACK":
		answer := ack{map[string]string{"SUBACK": "SUBSCRIBE", "PUBACK": "PUBLISH"}[p.Packet], p.ID}
		attempts = t.acks[answer]
		delete(t.acks, answer)
	case "PUBLISH":
		text, isError := strings.CutPrefix(p.Payload, "-ERR")
		if isError && unauthorized(strings.Trim(text, ": \r\n")) {
			for _, a := range t.replies[p.Correlation] {
				a.refused = true
			}
		}
		delete(t.replies, p.Correlation)
	}
	for i, a := range attempts {
		a.refused = a.refused || i < len(p.Codes) && slices.Contains(refusals, p.Codes[i])
	}
}

// refusals are the reason codes for clients that lack a right or a login.
var refusals = []int{int(mqtt.ReasonBadLogin), int(mqtt.ReasonNotAuthorized), int(mqtt.ReasonBadAuthMethod)}

func (t *trace) sent(p *packet) error {
	d := policy.Deed{Principal: t.who}
	switch p.Packet {
	case "CONNECT":
		t.who = policy.Principal{ClientID: p.Client, Username: p.User}
		d.Principal, d.Method = t.who, policy.Connect
		t.from = len(t.all)
		clear(t.acks) // another connection's identifiers
		t.try(p, d)
	case "SUBSCRIBE":
		for _, filter := range p.Filters {
			d.Action = policy.Action{Method: policy.Subscribe, On: filter}
			t.try(p, d)
		}
	case "PUBLISH":
		if p.Topic != wire.RequestTopic {
			d.Action = policy.Action{Method: policy.Publish, On: p.Topic}
			t.try(p, d)
			return nil
		}
		words := make([]string, len(p.Words))
		for i, raw := range p.Words {
			var err error
			if words[i], err = loggedText(raw); err != nil {
				return fmt.Errorf("words: %w", err)
			}
		}
		a := t.try(p, t.request(d, p.ResponseTopic, words)...)
		t.replies[p.Correlation] = append(t.replies[p.Correlation], a)
	}
	return nil
}

func (t *trace) request(d policy.Deed, reply string, words []string) []policy.Deed {
	deeds := request(d, reply)
	verb := ""
	if len(words) > 0 {
		verb = words[0]
	}
	switch {
	case verb == wire.VerbScan:
		t.seen.lacking("SCAN lists the keys that the client may read: the trace does not name them")
		return deeds
	case len(words) > 1 && (verb == wire.VerbGet || verb == wire.VerbKeyNotify):
		d.Method = policy.Read
	case len(words) > 1 && wire.IsWrite(verb):
		d.Method = policy.Write
	default:
		t.seen.lacking(fmt.Sprintf("the trace does not say whether %.20q reads or writes", verb))
		return deeds
	}
	d.On = words[1]
	return append(deeds, d)
}
