package client

import (
	"context"

	"github.com/sscli/sscli/internal/wire"
)

// VDelResult is the reply to [VDel]. If Found is true and Deleted is false, the key holds
// another value.
type VDelResult struct {
	ReplyInfo
	Deleted bool
	Found   bool // the key existed
}

// VDel returns a command that deletes a key if it holds value; its result is a [VDelResult]. It is not
// an error if the key is missing or holds another value.
func VDel[V ~string | ~[]byte](key string, value V, o ...WriteOptions) Command {
	return newCommand(effectDelete, func(v wire.Value, info *ReplyInfo) Result {
		if !isCount(v, -1) {
			return nil
		}
		return VDelResult{ReplyInfo: *info, Deleted: v.Int > 0, Found: v.Int != 0}
	}, wire.VerbVDel, key, string(value)).with(option(o))
}

// VDel sends the command [VDel].
func (s *Session) VDel(ctx context.Context, key string, value []byte, o ...WriteOptions) (VDelResult, error) {
	return As[VDelResult](s.Do(ctx, VDel(key, value, o...)))
}
