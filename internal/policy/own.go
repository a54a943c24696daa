package policy

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/sscli/sscli/internal/wire"
)

// OwnsTopic reports whether a filter, or a topic, matches only topics below clients/ that belong to the
// client with this id. Each topic belongs to at most one client id:
//
//   - The client's notifications, and one topic for its replies, have the id in hexadecimal (protocol.md 1.1).
//   - All other topics below clients/ID/ belong to the client with this id in plain text. A filter that
//     also matches the topic for the replies to another id, which is ID in hexadecimal, is not the client's.
//   - The id statestore has no topics in plain text, because they are the store's.
func OwnsTopic(clientID, filter string) bool {
	if own, notification := strings.CutPrefix(filter, wire.NotifyTopics); notification {
		return strings.HasPrefix(own+"/", wire.HexID(clientID)+"/")
	}
	return ownsInPlainText(clientID, filter) || filter == wire.HexResponseTopic(clientID)
}

func ownsInPlainText(clientID, filter string) bool {
	below, found := strings.CutPrefix(filter, "clients/")
	rest, own := strings.CutPrefix(below, clientID)
	if !found || !own || rest != "" && rest[0] != '/' || clientID == "statestore" || strings.ContainsAny(clientID, "+#/") {
		return false
	}
	other, err := hex.DecodeString(clientID)
	return err != nil || !utf8.Valid(other) || wire.HexID(string(other)) != clientID || !matches(filter, wire.HexResponseTopic(string(other)))
}

// MayReplyTo reports whether the store may publish the client's replies to a topic: with Subscribe on it and, outside
// the client's own topics, also Publish, see [AssumeReply]. Otherwise a client could make the store publish to
// topics that the client may not publish to.
func (c *Client) MayReplyTo(topic string) bool {
	return !strings.ContainsAny(topic, "+#") && c.Allowed(Action{Subscribe, topic}) != nil && (OwnsTopic(c.who.ClientID, topic) || c.Allowed(Action{Publish, topic}) != nil)
}

// matches reports whether a filter matches a topic (MQTT 5, 4.7.1).
func matches(filter, topic string) bool {
	var b bound
	for level := range strings.SplitSeq(filter, "/") {
		b.levels, b.wild = append(b.levels, level), append(b.wild, level == wildOne || level == wildAll)
	}
	return b.covers(topic, false)
}
