package emulator

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
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
type LoadError struct {
	Err   error
	Added int // number of keys that were added before; a data file keeps them
}

func (e *LoadError) Error() string { return fmt.Sprintf("load: %v", e.Err) }

func (e *LoadError) Unwrap() error { return e.Err }

// load sets the keys that Options.Load yields, except keys that exist already. It runs before the server listens, and
// in Reset.
func (s *Server) load() error {
	if s.opts.Load == nil {
		return nil
	}
	return s.addAll(s.opts.Load, false)
}

// Load sets keys, as Options.Load does, but replaces those that exist, which keep their fencing tokens. Watchers are
// notified. If keys yields an error, or the store refuses a key, the error is a *[LoadError]. Neither Options.Policy nor
// fences apply.
func (s *Server) Load(keys iter.Seq2[Seed, error]) error { return s.addAll(keys, true) }

func (s *Server) addAll(seeds iter.Seq2[Seed, error], replace bool) error {
	added := 0 // not from the number of keys, because keys may expire meanwhile
	for seed, err := range seeds {
		if err == nil {
			var exists bool
			if exists, err = s.add(seed, replace); err == nil && (replace || !exists) {
				added++
			}
		}
		if err != nil {
			return &LoadError{err, added}
		}
	}
	return s.journal.wait()
}

// add sets a key, whatever the rules and its fence say, and returns whether it existed. Unless replace is set, a key
// that exists stays as it is; NX would be refused for a key with a fence.
func (s *Server) add(seed Seed, replace bool) (existed bool, err error) {
	s.lock()
	e, existed := s.store.Lookup([]byte(seed.Key))
	var fence Version
	if existed {
		fence = version(e.Fence())
	}
	s.broker.Unlock()
	if existed && !replace {
		return true, nil
	}
	_, err = s.set(seed, fence, true)
	return existed, err
}

// set sets a key with a request, and does not wait for the data file. If loading is set, the rules do not apply.
func (s *Server) set(seed Seed, fence Version, loading bool) (Version, error) {
	words := []string{wire.VerbSet, seed.Key, string(seed.Value)}
	if seed.TTL != 0 {
		words = append(words, wire.OptionPX, strconv.FormatInt(seed.TTL.Milliseconds(), 10))
	}
	properties := fenced(fence)
	if seed.Persist {
		properties = append(properties, Property{Name: wire.PropPersist, Value: "true"})
	}
	version, _, err := s.write(func() []Property {
		s.loading = loading
		return properties
	}, words...)
	return version, err
}

// fenced returns the property for a fencing token, or none for the zero Version.
func fenced(token Version) []Property {
	if token.IsZero() {
		return nil
	}
	return []Property{{Name: wire.PropFence, Value: token.String()}}
}

// write sends a request, as a client with an empty id and no user name. It does not wait for the data file.
// The broker is locked while properties runs.
func (s *Server) write(properties func() []Property, words ...string) (Version, wire.Value, error) {
	resp := s.answer(func() Request {
		now := Version{Wall: s.now().UnixMilli(), Node: "emulator"}
		all := append(properties(), Property{Name: wire.PropTimestamp, Value: now.String()})
		return NewRequest("", wire.AppendRequest(nil, words...), all...)
	})
	if len(resp.Payload) == 0 {
		return Version{}, wire.Value{}, ErrClosed
	}
	reply, err := wire.ParseReply(resp.Payload)
	if err == nil {
		if refused := reply.StoreError(); refused != nil {
			err = refused
		}
	}
	if err != nil {
		return Version{}, wire.Value{}, fmt.Errorf("%s %q: %w", strings.ToLower(words[0]), words[1], err)
	}
	return resp.Version, reply.Value, nil
}
