package serve

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/emulator"
)

type limitFlags struct {
	set    []string
	refuse []string
}

func (f *limitFlags) bind(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.set, "limit", nil, "`NAME=VALUE`, a limit of the broker, such as receive-maximum=20; may be repeated")
	fs.StringArrayVar(&f.refuse, "refuse-filter", nil, "topic `FILTER` that nobody may subscribe to; may be repeated")
}

// limitsHelp is the part of the help that lists the limits of --limit.
const limitsHelp = `--limit sets a limit of the broker: keep-alive=DURATION, the longest Keep Alive (default:
any); receive-maximum (1024) and topic-alias-maximum (64); outbox (262144 packets) and
outbox-bytes (256 MiB) of a connected client; queue (65536 messages) and queue-bytes (64
MiB) of a client that is away; sessions (100000); subscriptions of a client (10000);
retained (100000 messages) and retained-bytes (256 MiB); memory, the bytes that clients
make the broker keep (1 GiB), not counting the keys and values of the store; store, the
bytes of these keys and values (default: any). Bytes may have a unit, such as MiB.`

// limitsOf returns pointers to the limits in o, keyed by their names for --limit. Each is a
// *time.Duration, a *uint16, an *int or a *config.Size.
func limitsOf(o *emulator.Options) map[string]any {
	return map[string]any{
		"keep-alive":          &o.Limits.KeepAlive,
		"receive-maximum":     &o.Limits.ReceiveMaximum,
		"topic-alias-maximum": &o.Limits.TopicAliasMaximum,
		"outbox":              &o.Limits.Outbox,
		"outbox-bytes":        (*config.Size)(&o.Limits.OutboxBytes),
		"queue":               &o.Limits.Queue,
		"queue-bytes":         (*config.Size)(&o.Limits.QueueBytes),
		"sessions":            &o.Limits.MaxSessions,
		"subscriptions":       &o.Limits.MaxSubscriptions,
		"retained":            &o.Limits.MaxRetained,
		"retained-bytes":      (*config.Size)(&o.Limits.MaxRetainedBytes),
		"store":               (*config.Size)(&o.MaxStored),
		"memory":              (*config.Size)(&o.Limits.MaxBytes),
	}
}

func (f limitFlags) apply(o *emulator.Options) error {
	o.RefuseFilters = f.refuse
	limits := limitsOf(o)
	for _, text := range f.set {
		name, value, ok := strings.Cut(text, "=")
		at, known := limits[name]
		if !ok || !known {
			return &fault.UsageError{Err: fmt.Errorf("--limit %.64q: expected NAME=VALUE with a known name", text), Hint: suggest.Try("`sscli serve --help`")}
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
	if size, ok := at.(*config.Size); ok {
		if err := size.Set(value); err != nil {
			return err
		}
		if *size < 1 {
			return errors.New("must be greater than 0")
		}
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
