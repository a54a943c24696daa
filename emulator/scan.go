package emulator

import (
	"bytes"
	"slices"

	"github.com/sscli/sscli/client/wire"
)

// scan answers one page of keys in the order of their bytes (protocol.md 9). A
// token is the last key of the page before, behind a mark: it depends on nothing
// else, so it stays good however the store changes meanwhile. Keys that the
// client may not read are left out (assumed).
func (e *Engine) scan(c *call) Response {
	if text := c.arguments(2, 3); text != "" {
		return e.refuse(text)
	}
	pattern := c.words[1]
	if len(pattern) == 0 {
		return e.refuse(wire.TextSyntax)
	}
	after := ""
	if len(c.words) == 3 {
		last, ok := bytes.CutPrefix(c.words[2], tokenMark())
		if !ok {
			return e.refuse(wire.TextSyntax)
		}
		after = string(last)
	}
	if text := e.stamps(c, false, false); text != "" {
		return e.refuse(text)
	}
	if e.opts.Variants.ScanEmptyPage && len(c.words) == 2 {
		return page(nil, tokenMark())
	}
	keys := e.ordered()
	start, _ := slices.BinarySearch(keys, after+"\x00") // the first key behind after
	var found []wire.Value
	for _, key := range keys[start:] {
		if !matchGlob(string(pattern), key) || !e.allowed(c, key, false) {
			continue
		}
		if len(found) == e.opts.ScanPage {
			return page(found, append(tokenMark(), found[len(found)-1].Text...))
		}
		found = append(found, wire.Value{Kind: wire.Blob, Text: []byte(key)})
	}
	return page(found, nil)
}

// tokenMark begins every token. It is not text: tokens are binary and opaque.
func tokenMark() []byte { return []byte{0x00, 0xff} }

func page(keys []wire.Value, token []byte) Response {
	items := []wire.Value{{Kind: wire.Array, Items: keys}}
	if token != nil {
		items = append(items, wire.Value{Kind: wire.Blob, Text: token})
	}
	return Response{Payload: wire.AppendValue(nil, wire.Value{Kind: wire.Array, Items: items})}
}
