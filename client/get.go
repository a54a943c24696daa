package client

import (
	"context"

	"github.com/sscli/sscli/client/wire"
)

// Get reads a key: [Reply.Bytes] has its value. A missing key is no error.
func Get(key string) Command {
	return newCommand(effectNone, func(v wire.Value) bool {
		return v.Kind == wire.Blob || v.Kind == wire.Null
	}, wire.VerbGet, key)
}

// Get is Do of the command Get.
func (s *Session) Get(ctx context.Context, key string) (Reply, error) {
	return s.Do(ctx, Get(key))
}
