package client

import (
	"context"

	"github.com/sscli/sscli/client/wire"
)

// VDel deletes a key if its value is the one given: [Reply.Count] is 1, 0 if the
// key was missing, or -1 if it holds another value.
func VDel(key string, value []byte, o WriteOptions) Command {
	return newCommand(effectDelete, isCount(-1), wire.VerbVDel, key, string(value)).with(o)
}

// VDel is Do of the command VDel.
func (s *Session) VDel(ctx context.Context, key string, value []byte, o WriteOptions) (Reply, error) {
	return s.Do(ctx, VDel(key, value, o))
}
