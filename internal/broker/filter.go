package broker

import (
	"bytes"
	"strings"
)

// Topics and topic filters (MQTT 5, 4.7, 4.8.2).

// validTopic reports whether a topic may be published to: it is not empty [MQTT-4.7.3-1] and
// has no wildcards [MQTT-3.3.2-2].
func validTopic(topic []byte) bool { return len(topic) > 0 && !hasWildcard(topic) }

func hasWildcard(topic []byte) bool {
	return bytes.IndexByte(topic, '+') >= 0 || bytes.IndexByte(topic, '#') >= 0
}

// validFilter reports whether a topic filter is not empty, each wildcard is a whole level, and `#`
// is only the last level [MQTT-4.7.1-1], [MQTT-4.7.1-2].
func validFilter(filter string) bool {
	valid := filter != ""
	for more := true; more; {
		var level string
		level, filter, more = strings.Cut(filter, "/")
		valid = valid && (len(level) <= 1 || !strings.ContainsAny(level, "+#")) && !(level == "#" && more)
	}
	return valid
}

const sharePrefix = "$share/"

// splitShare splits a shared subscription into its share name and its filter. If shared is false,
// rest is the whole filter. ok reports whether the filter is valid and the share name of a shared
// subscription is not empty and has no wildcards [MQTT-4.8.2-1], [MQTT-4.8.2-2].
func splitShare(filter string) (name, rest string, shared, ok bool) {
	rest, shared = strings.CutPrefix(filter, sharePrefix)
	if !shared {
		return "", rest, false, validFilter(rest)
	}
	name, rest, _ = strings.Cut(rest, "/")
	return name, rest, true, name != "" && !strings.ContainsAny(name, "+#") && validFilter(rest)
}
