package wire_test

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/wire"
)

// A hand is the wall clock of a test.
type hand struct{ ms atomic.Int64 }

func (h *hand) now() time.Time { return time.UnixMilli(h.ms.Load()) }

// clockAt returns a clock of node A at wall:counter, and its hand.
func clockAt(t testing.TB, wall int64, counter uint64) (*wire.Clock, *hand) {
	t.Helper()
	h := &hand{}
	h.ms.Store(wall)
	c := wire.NewClock("A", h.now)
	if err := c.Observe(wire.Version{Wall: wall, Counter: counter - 1, Node: "B"}); err != nil {
		t.Fatal(err)
	}
	return c, h
}

// stands checks the time of a clock by its next tick.
func stands(t testing.TB, c *wire.Clock, h *hand, wall int64, counter uint64) {
	t.Helper()
	h.ms.Store(wall)
	got, err := c.Tick()
	if want := (wire.Version{Wall: wall, Counter: counter + 1, Node: "A"}); err != nil || got != want {
		t.Errorf("the next tick is %v, %v, want %v", got, err, want)
	}
}

func TestClockFollowsTheVectorsOfTheProtocol(t *testing.T) {
	tests := []struct {
		received string
		now      int64
		wall     int64
		counter  uint64
		err      error
	}{
		{"1000:7:B", 900, 1000, 8, nil},
		{"1000:5:B", 1000, 1000, 6, nil},
		{"900:9:B", 950, 1000, 6, nil},
		{"1500:2:B", 1200, 1500, 3, nil},
		{"1100:2:B", 2000, 2000, 0, nil},
		{"1000:9:A", 2000, 1000, 5, nil},
		{"70000:0:B", 9999, 1000, 5, wire.ErrDrift},
		{"69999:0:B", 9999, 69999, 1, nil},
	}
	for _, test := range tests {
		t.Run(test.received, func(t *testing.T) {
			c, h := clockAt(t, 1000, 5)
			h.ms.Store(test.now)
			if err := wantError(c.Observe(mustVersion(t, test.received)), test.err); err != nil {
				t.Error(err)
			}
			stands(t, c, h, test.wall, test.counter)
		})
	}
}

func TestTickIsTheWallClockOrTheNextCount(t *testing.T) {
	tests := []struct {
		name    string
		now     int64
		wall    int64
		counter uint64
		err     error
	}{
		{"wall clock ahead", 70_001, 70_001, 0, nil},
		{"wall clock equal", 70_000, 70_000, 6, nil},
		{"wall clock behind", 69_999, 70_000, 6, nil},
		{"exactly the drift behind", 10_000, 70_000, 6, nil},
		{"more than the drift behind", 9_999, 0, 0, wire.ErrDrift},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, h := clockAt(t, 70_000, 5)
			h.ms.Store(test.now)
			got, err := c.Tick()
			if err := wantError(err, test.err); err != nil {
				t.Fatal(err)
			}
			if test.err != nil {
				if diff := cmp.Diff(wire.Version{}, got); diff != "" {
					t.Errorf("a reading beside an error (-want +got):\n%s", diff)
				}
				stands(t, c, h, 70_000, 5)
				return
			}
			if want := (wire.Version{Wall: test.wall, Counter: test.counter, Node: "A"}); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestStampStartsAgainAfterTheWallClockWasSetBack(t *testing.T) {
	tests := []struct {
		name    string
		counter uint64
		now     int64
		want    wire.Version
	}{
		{"wall clock ahead", 5, 70_001, wire.Version{Wall: 70_001, Node: "A"}},
		{"exactly the drift behind", 5, 10_000, wire.Version{Wall: 70_000, Counter: 6, Node: "A"}},
		{"more than the drift behind", 5, 9_999, wire.Version{Wall: 9_999, Node: "A"}},
		{"no count is left", math.MaxUint64, 70_000, wire.Version{Wall: 70_000, Node: "A"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, h := clockAt(t, 70_000, test.counter)
			if got := c.Stamp(time.UnixMilli(test.now)); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			stands(t, c, h, test.want.Wall, test.want.Counter)
		})
	}
}

func TestCounterOverflowLeavesTheClock(t *testing.T) {
	const most = math.MaxUint64
	observe := func(v wire.Version) func(*wire.Clock) error {
		return func(c *wire.Clock) error { return c.Observe(v) }
	}
	tests := []struct {
		name    string
		counter uint64
		move    func(*wire.Clock) error
	}{
		{"tick", most, func(c *wire.Clock) error { _, err := c.Tick(); return err }},
		{"same wall clock, own counter", most, observe(wire.Version{Wall: 1000, Node: "B"})},
		{"same wall clock, other counter", 5, observe(wire.Version{Wall: 1000, Counter: most, Node: "B"})},
		{"older", most, observe(wire.Version{Wall: 900, Node: "B"})},
		{"newer", 5, observe(wire.Version{Wall: 1500, Counter: most, Node: "B"})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, h := clockAt(t, 1000, test.counter)
			if err := wantError(test.move(c), wire.ErrCounterOverflow); err != nil {
				t.Error(err)
			}
			if test.counter != most {
				stands(t, c, h, 1000, test.counter)
			}
			h.ms.Store(1001)
			if got, err := c.Tick(); err != nil || got.Wall != 1001 {
				t.Errorf("a later tick is %v, %v", got, err)
			}
		})
	}
}

func TestDriftIsMeasuredAtTheEndsOfTime(t *testing.T) {
	tests := []struct {
		name      string
		now, wall int64
	}{
		{"far future", 0, math.MaxInt64},
		{"the difference overflows", -1, math.MaxInt64},
		{"from end to end", math.MinInt64, math.MaxInt64},
		{"before the epoch", -60_002, 0},
	}
	for _, test := range tests {
		h := &hand{}
		h.ms.Store(test.now)
		c := wire.NewClock("A", h.now)
		if err := c.Observe(wire.Version{Wall: test.wall, Node: "B"}); !errors.Is(err, wire.ErrDrift) {
			t.Errorf("%s: got %v, want %v", test.name, err, wire.ErrDrift)
		}
	}
	c, h := clockAt(t, 5, 5)
	h.ms.Store(math.MaxInt64)
	if got, err := c.Tick(); err != nil || got.Wall != math.MaxInt64 || got.Counter != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestDriftErrorSaysHowFar(t *testing.T) {
	c, h := clockAt(t, 1000, 5)
	h.ms.Store(9999)
	err := c.Observe(mustVersion(t, "70000:0:B"))
	const want = "the HLC is too far ahead of the wall clock: 60001 ms, at most 60000"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTicksOfSeveralGoroutinesAreUniqueAndAscending(t *testing.T) {
	const workers, each = 8, 500
	h := &hand{}
	h.ms.Store(1_000_000)
	c := wire.NewClock("A", h.now)
	readings := make([][]wire.Version, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := range each {
				switch i % 5 {
				case 0:
					h.ms.Add(1)
				case 1:
					if err := c.Observe(wire.Version{Wall: h.ms.Load() + 10, Counter: uint64(i), Node: "B"}); err != nil {
						t.Error(err)
					}
				}
				v, err := c.Tick()
				if err != nil {
					t.Error(err)
				}
				readings[w] = append(readings[w], v)
			}
		})
	}
	group.Wait()
	seen := map[wire.Version]bool{}
	for _, list := range readings {
		for i, v := range list {
			if seen[v] {
				t.Fatalf("%v was given twice", v)
			}
			seen[v] = true
			if i > 0 && v.Compare(list[i-1]) <= 0 {
				t.Fatalf("%v came after %v", v, list[i-1])
			}
		}
	}
	if len(seen) != workers*each {
		t.Errorf("got %d readings, want %d", len(seen), workers*each)
	}
}

// FuzzClock: whatever the wall clock does and whatever is received, ticks ascend, exceed everything observed,
// and are never more than MaxDrift ahead of the wall clock.
func FuzzClock(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 1, 200, 255, 1, 0, 0, 0, 0, 2, 0, 100, 9, 0, 0, 0, 0})
	f.Add([]byte{3, 255, 255, 255, 0, 0, 0, 0, 4, 9, 9, 9, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		h := &hand{}
		h.ms.Store(1_700_000_000_000)
		c := wire.NewClock("A", h.now)
		var floor wire.Version
		for ; len(script) >= 4; script = script[4:] {
			// Steps of 1 ms to 70 s, in both directions.
			step := int64(int16(binary.LittleEndian.Uint16(script[1:]))) * int64(1+script[3]%3)
			now := h.ms.Load()
			var err error
			switch script[0] % 6 {
			case 0:
				h.ms.Store(now + step)
			case 1:
				h.ms.Store(int64(uint64(now) + uint64(step)<<40))
			case 2, 3:
				seen := wire.Version{Wall: now + step, Counter: uint64(script[3]), Node: "B"}
				if script[0]%6 == 3 {
					seen = wire.Version{Wall: int64(uint64(step) << 48), Counter: math.MaxUint64 - uint64(script[3]), Node: "B"}
				}
				if err = c.Observe(seen); err == nil && seen.Compare(floor) > 0 {
					floor = seen
				}
			case 4:
				if c.Observe(wire.Version{Wall: math.MaxInt64, Counter: math.MaxUint64, Node: "A"}) != nil {
					t.Fatal("the clock's own reading moved it")
				}
			}
			if err != nil && !errors.Is(err, wire.ErrDrift) && !errors.Is(err, wire.ErrCounterOverflow) {
				t.Fatal(err)
			}

			now = h.ms.Load()
			tick, err := c.Tick()
			switch {
			case errors.Is(err, wire.ErrDrift), errors.Is(err, wire.ErrCounterOverflow):
			case err != nil:
				t.Fatal(err)
			case tick.Compare(floor) <= 0 || (tick.Wall == floor.Wall && tick.Counter <= floor.Counter):
				t.Fatalf("tick %v after %v", tick, floor)
			case tick.Wall > now && uint64(tick.Wall)-uint64(now) > uint64(wire.MaxDrift.Milliseconds()):
				t.Fatalf("tick %v at %d", tick, now)
			case tick.Node != "A":
				t.Fatalf("tick %v of another node", tick)
			default:
				floor = tick
			}
		}
	})
}
