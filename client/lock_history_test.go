package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wait"
	"github.com/sscli/sscli/internal/wire"
)

// A step is one request of a history; stepResult is its outcome. A request of unknown outcome never returns:
// it may be applied at any time, or never.
type step struct {
	verb  string // GET, NEX, VDEL or FENCED
	key   string
	value string
	token wire.Version
}

type stepResult struct {
	unknown bool
	value   string // GET: the value; empty = missing
	n       int64  // VDEL: the number in the reply; NEX: 1 = OK, -1 = refused
	refused wire.ErrorKind
}

// keyState is the model's state of a key. Values are not empty.
type keyState struct {
	value string
	fence wire.Version
}

// stepModel models the store according to protocol.md 2 and 4, one key at a time. lax leaves out the fence,
// like a store that does not check it.
func stepModel(lax bool) porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			keys := make(map[string][]porcupine.Operation)
			for _, op := range history {
				key := op.Input.(step).key
				keys[key] = append(keys[key], op)
			}
			var parts [][]porcupine.Operation
			for _, part := range keys {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() any { return keyState{} },
		Step: func(state, input, output any) (bool, any) {
			before, in, out := state.(keyState), input.(step), output.(stepResult)
			after, want := before.apply(in, lax)
			return out.unknown || out == want, after
		},
		Equal: func(a, b any) bool {
			x, y := a.(keyState), b.(keyState)
			return x.value == y.value && x.fence.Equal(y.fence)
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v %+v", input, output) },
	}
}

func (k keyState) apply(in step, lax bool) (keyState, stepResult) {
	switch in.verb {
	case "GET":
		return k, stepResult{value: k.value}
	case "NEX":
		if k.value != "" && k.value != in.value {
			return k, stepResult{n: -1}
		}
		return keyState{value: in.value}, stepResult{n: 1}
	case "VDEL":
		switch {
		case k.value == "":
			return k, stepResult{}
		case k.value != in.value:
			return k, stepResult{n: -1}
		}
		return keyState{}, stepResult{n: 1}
	}
	if !lax && in.token.Compare(k.fence) < 0 {
		return k, stepResult{refused: wire.ErrorFenceLower}
	}
	return keyState{in.value, in.token}, stepResult{n: 1}
}

// history lets clients acquire a lock, write with its token and read, while requests, replies and connections
// are lost.
func history(t *testing.T, seed uint64, spoil func(emulator.Request, emulator.Action) emulator.Action) []porcupine.Operation {
	const clients, steps = 6, 38 // at most 200 steps for a key
	var mu sync.Mutex
	var ops []porcupine.Operation
	synctest.Test(t, func(t *testing.T) {
		c := &contest{t: t, rng: rand.New(rand.NewPCG(seed, 1)), store: startVirtual(t, emulator.Options{}), end: time.Now().Add(24 * time.Hour)}
		c.store.Intercept(func(r emulator.Request) emulator.Action {
			a := c.misfortune(r)
			if spoil != nil {
				a = spoil(r, a)
			}
			return a
		})
		var clock int64
		tick := func() int64 {
			mu.Lock()
			defer mu.Unlock()
			clock++
			return clock
		}
		var people sync.WaitGroup
		for id := range clients {
			s := c.store.dial(t, newBarrier(), Options{ClientID: fmt.Sprintf("x%d", id)})
			people.Go(func() {
				defer s.Close()
				var token wire.Version // the newest token of this client
				for n := range steps {
					in := step{verb: []string{"GET", "NEX", "NEX", "VDEL", "FENCED", "FENCED"}[c.random(6)], key: theLock, value: fmt.Sprintf("x%d", id)}
					switch {
					case in.verb == "FENCED" && token.IsZero():
						in.verb = "NEX"
					case in.verb == "FENCED":
						in.key, in.token, in.value = theResource, token, fmt.Sprintf("x%d/%d", id, n)
					case in.verb == "GET" && c.random(2) == 0:
						in.key = theResource
					}
					called := tick()
					out, version, sent := c.take(s, in)
					returned := tick()
					if !sent {
						continue
					}
					if out.unknown {
						returned = math.MaxInt64
					}
					if in.verb == "NEX" && out.n == 1 {
						token = version
					}
					mu.Lock()
					ops = append(ops, porcupine.Operation{ClientId: id, Input: in, Output: out, Call: called, Return: returned})
					mu.Unlock()
					wait.For(context.Background(), c.between(0, time.Second))
				}
			})
		}
		people.Wait()
		c.store.Close()
	})
	return ops
}

// take runs one step; sent is false if certainly nothing reached the broker.
func (c *contest) take(s *Session, in step) (out stepResult, version wire.Version, sent bool) {
	ctx, cancel := context.WithTimeout(context.Background(), c.between(200*time.Millisecond, 4*time.Second))
	defer cancel()
	var command Command
	switch in.verb {
	case "GET":
		command = Get(in.key)
	case "NEX":
		command = Set(in.key, []byte(in.value), SetOptions{Condition: NEX, TTL: 24 * time.Hour})
	case "VDEL":
		command = VDel(in.key, []byte(in.value))
	case "FENCED":
		command = Set(in.key, []byte(in.value), SetOptions{WriteOptions: WriteOptions{Fence: in.token}})
	}
	r, err := s.Do(ctx, command)
	if refused, ok := errors.AsType[*wire.StoreError](err); ok {
		return stepResult{refused: refused.Kind()}, version, true
	}
	if _, ok := errors.AsType[*LostReplyError](err); ok {
		return stepResult{unknown: true}, version, true
	}
	if err != nil {
		return out, version, false // a read, a refusal by the broker, or no connection
	}
	switch r := r.(type) {
	case GetResult:
		out.value = string(r.Value)
	case SetResult:
		out.n = -1
		if r.Applied {
			out.n = 1
		}
	case VDelResult:
		switch {
		case r.Deleted:
			out.n = 1
		case r.Found:
			out.n = -1
		}
	}
	return out, r.Info().Version, true
}

// judgeHistory checks a history outside of virtual time, within a time limit.
func judgeHistory(t *testing.T, model porcupine.Model, ops []porcupine.Operation, limit time.Duration) porcupine.CheckResult {
	t.Helper()
	perKey := make(map[string]int)
	for _, op := range ops {
		perKey[op.Input.(step).key]++
	}
	for key, n := range perKey {
		if n > 300 { // the checker would take too long; 140 to 200 are usual
			t.Errorf("%d operations with %s", n, key)
		}
	}
	return porcupine.CheckOperationsTimeout(model, ops, limit)
}

// TestLockHistories: with every kind of failure, the locks, fenced writes and reads that clients see are
// linearizable.
func TestLockHistories(t *testing.T) {
	t.Parallel()
	total, unknown, undecided := 0, 0, 0
	for range *lockBubbles {
		seed := rand.Uint64()
		ops := history(t, seed, nil)
		for _, op := range ops {
			if total++; op.Output.(stepResult).unknown {
				unknown++
			}
		}
		switch judgeHistory(t, stepModel(false), ops, time.Minute) {
		case porcupine.Illegal:
			t.Fatalf("seed %d: the history is not linearizable", seed)
		case porcupine.Unknown:
			undecided++
		}
	}
	t.Logf("%d histories with %d operations, %d of them of unknown outcome; %d histories undecided", *lockBubbles, total, unknown, undecided)
	if undecided > *lockBubbles/4 {
		t.Errorf("%d of %d histories could not be decided in time", undecided, *lockBubbles)
	}
}

// TestLockHistoriesCatch checks the check: it catches a store, or a model, that is sometimes wrong.
func TestLockHistoriesCatch(t *testing.T) {
	t.Parallel()
	rewrite := func(a emulator.Action, from, to string) emulator.Action {
		before := a.Rewrite
		a.Rewrite = func(answer *emulator.Answer) {
			if before != nil {
				before(answer)
			}
			if string(answer.Payload) == from {
				answer.Payload = []byte(to)
			}
		}
		return a
	}
	for name, c := range map[string]struct {
		model porcupine.Model
		spoil func(emulator.Request, emulator.Action) emulator.Action
	}{
		"a model without a fence": {model: stepModel(true)},
		"a lock that two hold": {stepModel(false), func(r emulator.Request, a emulator.Action) emulator.Action {
			if r.Verb() == wire.VerbSet && r.Key() == theLock && rand.N(10) == 0 {
				return rewrite(a, ":-1\r\n", "+OK\r\n")
			}
			return a
		}},
		"a stale read": {stepModel(false), func(r emulator.Request, a emulator.Action) emulator.Action {
			if r.Verb() == wire.VerbGet && rand.N(3) == 0 {
				return rewrite(a, "$2\r\nx0\r\n", "$2\r\nx1\r\n")
			}
			return a
		}},
		"a release that is forgotten": {stepModel(false), func(r emulator.Request, a emulator.Action) emulator.Action {
			if r.Verb() == wire.VerbVDel && rand.N(10) == 0 {
				a.Rewrite = func(answer *emulator.Answer) { answer.Payload = []byte(":1\r\n") }
			}
			return a
		}},
		"a fence that is forgotten": {stepModel(false), func(r emulator.Request, a emulator.Action) emulator.Action {
			if _, fenced := r.Property(wire.PropFence); fenced && rand.N(5) == 0 {
				return rewrite(a, "-ERR "+wire.TextFenceLower+"\r\n", "+OK\r\n")
			}
			return a
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 200 { // a busy machine leaves some histories undecided
				if judgeHistory(t, c.model, history(t, rand.Uint64(), c.spoil), 5*time.Second) == porcupine.Illegal {
					return
				}
			}
			t.Error("200 histories passed")
		})
	}
}
