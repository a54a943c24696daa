package policycmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/wire"
)

// A trace reads the packets of --trace-file, and gives seen what the client did at its end, because the broker's
// answer to a packet comes after it.
type trace struct {
	seen *seen
	who  policy.Principal
	all  []*attempt
	from int                   // index in all of the last CONNECT
	open map[string][]*attempt // those without an answer, by a packet's type and identifier, or by correlation data
}

// An attempt is what the client needs for a packet or, of SUBSCRIBE, for one filter.
type attempt struct {
	deeds   []policy.Deed
	refused bool
}

// try adds an attempt, whose answer has one of the names.
func (t *trace) try(deeds []policy.Deed, names ...string) {
	a := &attempt{deeds: deeds}
	t.all = append(t.all, a)
	for _, name := range names {
		t.open[name] = append(t.open[name], a)
	}
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

// packet reads a line.
func (t *trace) packet(line string) {
	head, detail, _ := strings.Cut(line, " bytes) ")
	detail = strings.TrimPrefix(detail, "DUP ")
	_, packet, sent := strings.Cut(head, " -> ")
	if sent {
		t.sent(packet, detail)
	} else if _, packet, received := strings.Cut(head, " <- "); received {
		t.received(packet, detail)
	}
}

// received reads what the broker sent. packet is such as PUBACK #2 (4.
func (t *trace) received(packet, detail string) {
	var attempts []*attempt
	codes := reasons(detail)
	switch kind, id := cutPacket(packet); kind {
	case "CONNACK":
		attempts = t.all[t.from:] // SUBSCRIBE may have been sent with CONNECT
		if len(codes) > 0 {
			codes = slices.Repeat(codes[:1], len(attempts))
		}
	case "SUBACK", "PUBACK":
		name := map[string]string{"SUBACK": "SUBSCRIBE ", "PUBACK": "PUBLISH "}[kind] + id
		attempts = t.open[name]
		delete(t.open, name)
	case "PUBLISH":
		reply, isReply := strings.CutPrefix(detail, "reply ")
		answer, _ := quoted(reply)
		text, isError := strings.CutPrefix(strings.TrimSpace(answer), "-ERR")
		name := correlation(detail)
		if isReply && isError && unauthorized(strings.TrimLeft(text, ": ")) {
			for _, a := range t.open[name] {
				a.refused = true
			}
		}
		delete(t.open, name)
		return
	}
	for i, a := range attempts {
		a.refused = a.refused || i < len(codes) && slices.Contains(refusals, codes[i])
	}
}

// cutPacket returns the type and the identifier of a packet.
func cutPacket(packet string) (kind, id string) {
	kind, rest, _ := strings.Cut(packet, " ")
	id, _, _ = strings.Cut(rest, " ")
	return kind, id
}

// refusals are the reason codes for clients that lack a right or a login: bad user name or password, not authorized,
// bad authentication method.
var refusals = []string{"0x86", "0x87", "0x8C"}

// reasons returns the reason codes of an acknowledgement.
func reasons(detail string) (codes []string) {
	for detail != "" {
		if detail[0] == '"' {
			_, detail = quoted(detail)
			continue
		}
		if len(detail) >= 4 && strings.HasPrefix(detail, "0x") {
			codes = append(codes, detail[:4])
		}
		detail = detail[1:]
	}
	return codes
}

// correlation returns the correlation data of a request or a reply, as text.
func correlation(detail string) string {
	i := strings.LastIndex(detail, ", correlation ")
	if i < 0 {
		return ""
	}
	return after(detail[i:], ", correlation ")
}

// sent reads what the client sent. packet is such as PUBLISH #2 (344.
func (t *trace) sent(packet, detail string) {
	d := policy.Deed{Principal: t.who}
	switch kind, id := cutPacket(packet); kind {
	case "CONNECT":
		t.who = policy.Principal{ClientID: after(detail, "client id "), Username: after(detail, "user name ")}
		d.Principal, d.Method = t.who, policy.Connect
		t.from = len(t.all)
		maps.DeleteFunc(t.open, func(name string, _ []*attempt) bool { return strings.Contains(name, "#") }) // another connection's identifiers
		t.try([]policy.Deed{d})
	case "SUBSCRIBE":
		for rest := detail; strings.HasPrefix(rest, `"`); {
			filter, more := quoted(rest)
			d.Action = policy.Action{Method: policy.Subscribe, On: filter}
			t.try([]policy.Deed{d}, kind+" "+id)
			_, rest, _ = strings.Cut(more, ", ")
		}
	case "PUBLISH":
		words, isRequest := strings.CutPrefix(detail, "request ")
		if isRequest {
			t.try(t.request(d, words), kind+" "+id, correlation(detail))
			return
		}
		payload, isMessage := strings.CutPrefix(detail, "message ")
		_, rest := quoted(payload)
		if topic := after(rest, " on "); isMessage && topic != "" {
			d.Action = policy.Action{Method: policy.Publish, On: topic}
			t.try([]policy.Deed{d}, kind+" "+id)
		}
	}
}

// request returns what a request needs. words are its words, and what follows them.
func (t *trace) request(d policy.Deed, words string) []policy.Deed {
	verb, rest, _ := strings.Cut(words, " ")
	key, more := quoted(rest)
	deeds := request(d, after(rest, "response topic "))
	switch verb {
	case wire.VerbGet, wire.VerbKeyNotify:
		d.Method = policy.Read
	case wire.VerbSet, wire.VerbDel, wire.VerbVDel:
		d.Method = policy.Write
	case wire.VerbScan:
		t.seen.lacking("SCAN lists the keys that the client may read: the trace does not name them")
		return deeds
	default:
		t.seen.lacking(fmt.Sprintf("the trace does not say whether %.20q reads or writes", verb))
		return deeds
	}
	if strings.HasSuffix(key, "…") || strings.HasPrefix(more, "…") {
		t.seen.lacking("the trace shows only the beginning of the key " + format.BriefWord(key))
		return deeds
	}
	d.On = key
	return append(deeds, d)
}

// after returns the quoted word after a text.
func after(line, before string) string {
	_, rest, found := strings.Cut(line, before)
	if !found {
		return ""
	}
	word, _ := quoted(rest)
	return word
}

// quoted returns the word at the beginning of a text, without its quotes, and the text after it.
func quoted(text string) (word, rest string) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, " ,")
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:]
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			word, err := format.Unquote(text[:i+1])
			if err != nil {
				word = text[1:i]
			}
			return word, text[i+1:]
		}
	}
	return text, ""
}
