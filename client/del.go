package client

import (
	"context"

	"github.com/sscli/sscli/internal/wire"
)

// DelResult is the reply to [Del].
type DelResult struct {
	ReplyInfo
	Deleted bool // false if the key was missing
}

// Del returns a command that deletes a key; its result is a [DelResult]. A missing key is not an error.
func Del(key string, o ...WriteOptions) Command {
	return newCommand(effectDelete, func(v wire.Value, info *ReplyInfo) Result {
		if !isCount(v, 0) {
			return nil
		}
		return DelResult{ReplyInfo: *info, Deleted: v.Int > 0}
	}, wire.VerbDel, key).with(option(o))
}

// Del sends the command [Del].
func (s *Session) Del(ctx context.Context, key string, o ...WriteOptions) (DelResult, error) {
	return As[DelResult](s.Do(ctx, Del(key, o...)))
}
