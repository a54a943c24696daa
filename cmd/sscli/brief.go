package main

import (
	"fmt"
	"strings"

	"github.com/sscli/sscli/format"
)

// shown quotes bytes of which there may be many.
func shown(b []byte) string { return cut(b, format.Quote[[]byte]) }

// shownKey quotes a key, or a name, in a message.
func shownKey(s string) string { return cut([]byte(s), format.Quote[[]byte]) }

func cut(b []byte, quote func([]byte) string) string {
	const most = 120
	if len(b) <= most {
		return quote(b)
	}
	return fmt.Sprintf("%s… (%d bytes)", quote(b[:most]), len(b))
}

func lower(verb string) string { return strings.ToLower(format.Escape(verb)) }
