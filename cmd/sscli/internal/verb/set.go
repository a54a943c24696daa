package verb

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/fence"
	"github.com/sscli/sscli/format"
)

// newSet returns the verb `set`.
func newSet() Verb {
	var o SetFlags
	return Verb{
		use:     "set KEY VALUE [NX|NEX] [PX MS]",
		Aliases: []string{"put"},
		short:   "Store a value",
		long: `Store a value. The exit code is 1 if the condition is not met.

NX stores only if the key does not exist; NEX also if it holds exactly this value.
PX makes the key expire after MS milliseconds. Write these options after the
operands, as the protocol does, or as flags.

A lone - reads the value from standard input: every byte, also a final newline.`,
		example: "  sscli set setpoint 21.5\n  sscli set lock me NEX PX 10000\n  sscli set image - < image.png\n  sscli set door open --fence 001696374425000:00001:StateStore",
		keys:    1,
		Flags:   o.Bind,
		Parse:   o.parse,
		Writes:  always,
	}
}

// SetFlags are the flags of `set`, which batch --load has too.
type SetFlags struct {
	fence.Flags
	nx, nex, persist bool
	px, ttl, file    config.Text
}

// Bind defines the flags.
func (o *SetFlags) Bind(fs *pflag.FlagSet) {
	fs.BoolVar(&o.nx, "nx", false, "store only if the key does not exist")
	fs.BoolVar(&o.nex, "nex", false, "store only if the key does not exist or holds this value")
	fs.Var(&o.px, "px", "make the key expire after `MS` milliseconds")
	fs.Var(&o.ttl, "ttl", "make the key expire after `DURATION`, such as 500ms or 2m")
	fs.BoolVar(&o.persist, "persist", false, "ask the broker to keep the entry on disk")
	fs.VarP(&o.file, "file", "f", "read the value from `FILE`")
	o.Flags.Bind(fs)
}

// parse reads the operands of `set`.
func (o *SetFlags) parse(args []string, in app.Source, room []client.Command) (Request, error) {
	if len(args) == 0 {
		return Request{}, fault.Usagef("missing KEY and VALUE")
	}
	key := app.Unprotect(args[0])
	value, rest, err := app.Value(args[1:], string(o.file), in)
	if err != nil {
		return Request{}, err
	}
	if len(rest) > 0 {
		more := *o // and what the operands add
		o = &more
		if err := o.words(key, rest); err != nil {
			return Request{}, err
		}
	}
	options, err := o.Options()
	if err != nil {
		return Request{}, err
	}
	req := SetRequest(key, value, options, room)
	req.Force = o.Force
	return req, nil
}

// SetRequest returns the request that sets a key to a value. room is as for [Verb.Parse].
func SetRequest(key, value string, options client.SetOptions, room []client.Command) Request {
	show := showSet
	if options.Condition == client.NEX {
		show = showSetNEX
	}
	return Request{Commands: append(room, client.SetText(key, value, options)), Show: show}
}

func showSet(c *client.Command, answer client.Result) (format.Result, bool, error) {
	return setResult(c, answer.(client.SetResult), "exists")
}

func showSetNEX(c *client.Command, answer client.Result) (format.Result, bool, error) {
	return setResult(c, answer.(client.SetResult), "differs")
}

// setResult returns the result of a SET, with the reason for which it would not be applied.
func setResult(c *client.Command, r client.SetResult, reason string) (format.Result, bool, error) {
	result := format.Set{Key: c.Key(), Applied: r.Applied, Version: app.Version(r.Version), RTT: r.RTT}
	if !r.Applied {
		result.Reason = reason
	}
	return result, r.Applied, nil
}

// words reads options that are written as the protocol writes them, after the value.
func (o *SetFlags) words(key string, rest []string) error {
	for len(rest) > 0 {
		switch word := app.Unprotect(rest[0]); strings.ToUpper(word) {
		case wire.OptionNX:
			o.nx = true
		case wire.OptionNEX:
			o.nex = true
		case wire.OptionPX:
			if len(rest) == 1 {
				return fault.Usagef("PX without MS: want PX and milliseconds")
			}
			if o.px != "" {
				return fault.Usagef("PX twice: want it once")
			}
			if err := o.px.Set(app.Unprotect(rest[1])); err != nil {
				return fault.Usagef("PX %q: %w", rest[1], err)
			}
			rest = rest[1:]
		case "EX":
			ttl := "10s"
			if len(rest) > 1 {
				if n, err := strconv.ParseUint(app.Unprotect(rest[1]), 10, 32); err == nil {
					ttl = fmt.Sprintf("%ds", n)
				}
			}
			return &fault.UsageError{
				Err:  fmt.Errorf("%.64q after the value: the expiry is --ttl, or PX and milliseconds", word),
				Hint: "sscli set " + format.Word(key) + " VALUE --ttl " + ttl,
			}
		default:
			return fault.Usagef("%.64q after the value: want NX, NEX or PX MS, and quotes around a value with spaces", word)
		}
		rest = rest[1:]
	}
	return nil
}

// Options returns the options that the flags stand for. The error is a usage error.
func (o *SetFlags) Options() (client.SetOptions, error) {
	options := client.SetOptions{Persist: o.persist}
	var err error
	switch {
	case o.nx && o.nex:
		return options, fault.Usagef("NX together with NEX: want one of them")
	case o.nx:
		options.Condition = client.NX
	case o.nex:
		options.Condition = client.NEX
	}
	switch {
	case o.px != "" && o.ttl != "":
		return options, fault.Usagef("PX together with --ttl: want one of them")
	case o.px != "":
		ms, err := strconv.ParseInt(string(o.px), 10, 64)
		if err != nil || ms < 1 || ms > int64(maxTTL/time.Millisecond) {
			return options, fault.Usagef("PX %.32q: want a whole number of milliseconds from 1 to %d", o.px, maxTTL/time.Millisecond)
		}
		options.TTL = time.Duration(ms) * time.Millisecond
	case o.ttl != "":
		options.TTL, err = config.ParseDuration(string(o.ttl))
		if err != nil {
			usage := &fault.UsageError{Err: fmt.Errorf("--ttl: %w", err)}
			if meant := config.MeantDuration(string(o.ttl)); meant != "" {
				usage.Hint = "--ttl " + meant
			}
			return options, usage
		}
		if options.TTL < time.Millisecond || options.TTL%time.Millisecond != 0 {
			return options, fault.Usagef("--ttl %s: want whole milliseconds, at least 1ms", o.ttl)
		}
	}
	options.WriteOptions, err = o.Flags.Options()
	return options, err
}

// maxTTL is the longest time.Duration in whole milliseconds, 292 years.
const maxTTL = time.Duration(1<<63-1) / time.Millisecond * time.Millisecond
