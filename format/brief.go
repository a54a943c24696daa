package format

import (
	"fmt"
	"strings"
)

// maxBrief is the maximum number of bytes of a key or a value that a message shows.
const maxBrief = 120

// Brief is like [Quote], but for a message: it cuts text after 120 bytes and appends the full length.
func Brief[T Bytes](b T) string { return brief(b, Quote[T]) }

// BriefWord is like [Word], but shortens text as [Brief] does.
func BriefWord[T Bytes](b T) string { return brief(b, Word[T]) }

// BriefShWord is like [ShWord], but shortens text as [Brief] does.
func BriefShWord[T Bytes](b T) string { return brief(b, ShWord[T]) }

func brief[T Bytes](b T, quote func(T) string) string {
	if len(b) <= maxBrief {
		return quote(b)
	}
	return fmt.Sprintf("%s… (%d bytes)", quote(T(b[:maxBrief])), len(b))
}

// Verb returns a protocol verb as messages show it: in lower case and escaped.
func Verb(verb string) string { return strings.ToLower(Escape(verb)) }
