package client

import (
	"slices"

	"github.com/sscli/sscli/internal/wire"
)

// CallResult is the reply to [Call].
type CallResult struct {
	ReplyInfo
	Value Value // the store's reply
}

// Call returns a command with any words, for requests that this package does not support yet; its
// result is a [CallResult]. If its reply is lost, [Session.ReadBack] helps only if the package knows
// the verb.
func Call(words []string, o ...WriteOptions) Command {
	c := Command{effect: effectUnknown, read: readCall}
	c.count = copy(c.first[:], words)
	c.more = slices.Clone(words[c.count:])
	if len(words) == 0 {
		c.err = invalid("the request is empty, it needs at least a verb")
		return c
	}
	switch verb := words[0]; {
	case !wire.Changes(verb):
		c.effect = effectNone
	case verb == wire.VerbSet && len(words) > 2:
		c.effect = effectPut
	case verb != wire.VerbSet && wire.IsWrite(verb) && len(words) > 1:
		c.effect = effectDelete
	}
	return c.with(option(o))
}

func readCall(v wire.Value, info *ReplyInfo) Result {
	return CallResult{ReplyInfo: *info, Value: v.Clone()}
}
