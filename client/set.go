package client

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/sscli/sscli/internal/wire"
)

// Condition says when a SET stores its value.
type Condition string

// Always stores the value without a condition. NX stores the value only if the key does not exist.
// NEX stores the value only if the key does not exist, or already holds exactly this value.
const (
	Always Condition = ""
	NX     Condition = wire.OptionNX
	NEX    Condition = wire.OptionNEX
)

// SetOptions are the options of [Set].
type SetOptions struct {
	WriteOptions
	Condition Condition
	TTL       time.Duration // whole milliseconds; 0 = the key does not expire
	Persist   bool          // ask the store to keep the entry on disk
}

// SetResult is the reply to [Set].
type SetResult struct {
	ReplyInfo
	Applied bool // the value was stored; false if the condition was not met
}

// Set returns a command that stores a value; its result is a [SetResult]. A condition that was not
// met is not an error.
func Set[V ~string | ~[]byte](key string, value V, options ...SetOptions) Command {
	o, err := option(options)
	c := newCommand(effectPut, readSet, wire.VerbSet, key, string(value))
	c.err = cmp.Or(c.err, err)
	if o.Condition != Always {
		c.more = append(c.more, string(o.Condition))
	}
	if o.TTL != 0 {
		c.more = append(c.more, wire.OptionPX, strconv.FormatInt(o.TTL.Milliseconds(), 10))
	}
	c.setFence(o.Fence)
	c.persist = o.Persist
	switch {
	case c.err != nil:
	case o.TTL < 0 || o.TTL%time.Millisecond != 0:
		c.err = invalid("the time to live %v must be whole milliseconds, at least 1", o.TTL)
	case o.Condition != Always && o.Condition != NX && o.Condition != NEX:
		c.err = invalid("the condition %q must be NX or NEX", string(o.Condition))
	}
	return c
}

func readSet(v wire.Value, info *ReplyInfo) Result {
	if !isOK(v) && !(v.Kind == wire.Integer && v.Int == -1) {
		return nil
	}
	return SetResult{ReplyInfo: *info, Applied: isOK(v)}
}

func isOK(v wire.Value) bool { return v.Kind == wire.SimpleString && string(v.Text) == "OK" }

// Set sends the command [Set]. A condition that is not met is not an error: Applied is false,
// and Version is the existing key's version, if the store sent one.
func (s *Session) Set(ctx context.Context, key string, value []byte, o ...SetOptions) (SetResult, error) {
	return As[SetResult](s.Do(ctx, Set(key, value, o...)))
}
