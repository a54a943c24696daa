package broker

import "bytes"

// Topics and topic filters (MQTT 5, 4.7, 4.8.2).

// validTopic reports whether a topic name may be published to: it is not empty
// [MQTT-4.7.3-1] and has no wildcards [MQTT-3.3.2-2].
func validTopic(topic []byte) bool { return len(topic) > 0 && !hasWildcard(topic) }

func hasWildcard(topic []byte) bool {
	return bytes.IndexByte(topic, '+') >= 0 || bytes.IndexByte(topic, '#') >= 0
}

// validFilter reports whether the wildcards of a topic filter are levels of their own, and
// `#` the last one [MQTT-4.7.1-1], [MQTT-4.7.1-2].
func validFilter(filter string) bool {
	if filter == "" {
		return false
	}
	for i := range len(filter) {
		c := filter[i]
		if c != '+' && c != '#' {
			continue
		}
		if i > 0 && filter[i-1] != '/' || c == '#' && i < len(filter)-1 || c == '+' && i < len(filter)-1 && filter[i+1] != '/' {
			return false
		}
	}
	return true
}

const sharePrefix = "$share/"

func isShared(filter []byte) bool { return bytes.HasPrefix(filter, []byte(sharePrefix)) }

// splitShare returns the name and the filter of a shared subscription, or shared false.
// ok is false for a name that is missing or has wildcards [MQTT-4.8.2-1],
// [MQTT-4.8.2-2].
func splitShare(filter string) (name, rest string, shared, ok bool) {
	if len(filter) < len(sharePrefix) || filter[:len(sharePrefix)] != sharePrefix {
		return "", filter, false, validFilter(filter)
	}
	rest = filter[len(sharePrefix):]
	for i := range len(rest) {
		switch rest[i] {
		case '+', '#':
			return "", "", true, false
		case '/':
			return rest[:i], rest[i+1:], true, i > 0 && validFilter(rest[i+1:])
		}
	}
	return "", "", true, false
}

// nextLevel splits the first level off a topic; more reports whether another follows.
func nextLevel(topic string) (level, rest string, more bool) {
	for i := range len(topic) {
		if topic[i] == '/' {
			return topic[:i], topic[i+1:], true
		}
	}
	return topic, "", false
}
