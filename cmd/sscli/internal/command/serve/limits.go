package serve

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
)

// limitFlags limit the work and the memory that clients can cause.
type limitFlags struct {
	set    []string
	refuse []string
}

func (f *limitFlags) bind(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.set, "limit", nil, "`NAME=VALUE`, a limit of the broker, such as receive-maximum=20; may be repeated")
	fs.StringArrayVar(&f.refuse, "refuse-filter", nil, "topic `FILTER` that nobody may subscribe to; may be repeated")
}

// limitsHelp lists the limits of --limit.
const limitsHelp = `--limit sets a limit of the broker: keep-alive=DURATION, the longest Keep Alive (default:
any); receive-maximum (1024) and topic-alias-maximum (64); outbox (262144 packets) and
outbox-bytes (256 MiB) of a connected client; queue (65536 messages) and queue-bytes (64
MiB) of a client that is away; sessions (100000); subscriptions of a client (10000);
retained (100000 messages) and retained-bytes (256 MiB); memory, the bytes that clients
make the broker keep (1 GiB), not counting the keys and values of the store; store, the
bytes of these keys and values (default: any).`

// limitField returns a pointer to the option of a limit: a *time.Duration, *uint16 or *int. It is
// nil for an unknown name.
func limitField(o *emulator.Options, name string) any {
	switch name {
	case "keep-alive":
		return &o.Limits.KeepAlive
	case "receive-maximum":
		return &o.Limits.ReceiveMaximum
	case "topic-alias-maximum":
		return &o.Limits.TopicAliasMaximum
	case "outbox":
		return &o.Limits.Outbox
	case "outbox-bytes":
		return &o.Limits.OutboxBytes
	case "queue":
		return &o.Limits.Queue
	case "queue-bytes":
		return &o.Limits.QueueBytes
	case "sessions":
		return &o.Limits.MaxSessions
	case "subscriptions":
		return &o.Limits.MaxSubscriptions
	case "retained":
		return &o.Limits.MaxRetained
	case "retained-bytes":
		return &o.Limits.MaxRetainedBytes
	case "store":
		return &o.MaxStored
	case "memory":
		return &o.Limits.MaxBytes
	}
	return nil
}

func (f limitFlags) apply(o *emulator.Options) error {
	o.RefuseFilters = f.refuse
	for _, text := range f.set {
		name, value, ok := strings.Cut(text, "=")
		at := limitField(o, name)
		if !ok || at == nil {
			return &fault.UsageError{Err: fmt.Errorf("--limit %.64q: expected NAME=VALUE with a known name", text), Hint: "sscli serve --help"}
		}
		if err := setLimit(at, value); err != nil {
			return fault.Usagef("--limit %.64q: %w", text, err)
		}
	}
	return nil
}

func setLimit(at any, value string) error {
	if d, ok := at.(*time.Duration); ok {
		limit, err := config.ParseDuration(value)
		if err != nil {
			return err
		}
		if limit < time.Second || limit > math.MaxUint16*time.Second || limit%time.Second != 0 {
			return fmt.Errorf("must be whole seconds, from 1s to %ds", math.MaxUint16)
		}
		*d = limit
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return errors.New("must be a number greater than 0")
	}
	switch p := at.(type) {
	case *uint16:
		if n > math.MaxUint16 {
			return fmt.Errorf("must be a number from 1 to %d", math.MaxUint16)
		}
		*p = uint16(n)
	case *int:
		*p = n
	}
	return nil
}

// collectorMemory is how many bytes of garbage may stay uncollected when clients use all the memory
// that the limits allow.
const collectorMemory = 36 << 20

// boundMemory makes the garbage collector keep the process's memory near the server's limits until
// stop is called. The limits alone bound only live memory.
func boundMemory(server *emulator.Server, limits emulator.Limits) (stop func()) {
	const interval = time.Second
	kept := int64(cmp.Or(limits.MaxBytes, 1<<30))
	ended := make(chan struct{})
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			stored := int64(server.State().Stored)
			debug.SetMemoryLimit(kept + stored + stored/8 + collectorMemory)
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended) }
}
