package emulator

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sscli/sscli/internal/wire"
)

// A Seed is a key that Options.Load adds to a new server.
type Seed struct {
	Key     string
	Value   []byte
	TTL     time.Duration // whole milliseconds; 0 = the key does not expire
	Persist bool          // set the key with `aio-persistence`
}

// A LoadError reports an error from Options.Load, or a key that the store refused.
type LoadError struct{ Err error }

func (e *LoadError) Error() string { return "load: " + e.Err.Error() }

func (e *LoadError) Unwrap() error { return e.Err }

// load sets the keys that Options.Load yields, except keys that exist already.
func (s *Server) load() error {
	if s.opts.Load == nil {
		return nil
	}
	for seed, err := range s.opts.Load {
		if err == nil {
			_, err = s.set(seed, wire.OptionNX)
		}
		if err != nil {
			return &LoadError{err}
		}
	}
	return s.journal.wait()
}

// set sets a key with a request, and does not wait for the data file. It appends options, such as NX, to
// the SET.
func (s *Server) set(seed Seed, options ...string) (wire.Version, error) {
	words := append([]string{wire.VerbSet, seed.Key, string(seed.Value)}, options...)
	if seed.TTL != 0 {
		words = append(words, wire.OptionPX, strconv.FormatInt(seed.TTL.Milliseconds(), 10))
	}
	now := wire.Version{Wall: s.Now().UnixMilli(), Node: "emulator"}
	req := NewRequest("", wire.AppendRequest(nil, words...), Property{Name: wire.PropTimestamp, Value: now.String()})
	if seed.Persist {
		req.Properties = append(req.Properties, Property{Name: wire.PropPersist, Value: "true"})
	}
	resp := s.answer(req)
	if len(resp.Payload) == 0 {
		return wire.Version{}, ErrClosed
	}
	reply, err := wire.ParseReply(resp.Payload)
	if err == nil {
		if refused := reply.StoreError(); refused != nil {
			err = refused
		}
	}
	if err != nil {
		return wire.Version{}, fmt.Errorf("set %q: %w", seed.Key, err)
	}
	return resp.Version, nil
}
