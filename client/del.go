package client

import (
	"context"

	"github.com/sscli/sscli/client/wire"
)

// Del deletes a key: [Reply.Count] is 1, or 0 if it was missing.
func Del(key string, o WriteOptions) Command {
	return newCommand(effectDelete, isCount(0), wire.VerbDel, key).with(o)
}

// Del is Do of the command Del.
func (s *Session) Del(ctx context.Context, key string, o WriteOptions) (Reply, error) {
	return s.Do(ctx, Del(key, o))
}
