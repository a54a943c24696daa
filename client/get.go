package client

import (
	"bytes"
	"context"

	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/wire"
)

// GetResult is the reply to [Get].
type GetResult struct {
	ReplyInfo
	Value []byte // nil if the key is missing
	Found bool   // the key exists
}

// Get returns a command that reads a key; its result is a [GetResult]. A missing key is not an error.
func Get(key string) Command {
	return newCommand(effectNone, func(v wire.Value, info *ReplyInfo) Result {
		if v.Kind != wire.Blob && v.Kind != wire.Null {
			return nil
		}
		value := v.Text
		if len(value) <= mqtt.ReusedSize {
			value = bytes.Clone(value)
		}
		return GetResult{ReplyInfo: *info, Value: value, Found: v.Kind == wire.Blob}
	}, wire.VerbGet, key)
}

// Get sends the command [Get].
func (s *Session) Get(ctx context.Context, key string) (GetResult, error) {
	return As[GetResult](s.Do(ctx, Get(key)))
}
