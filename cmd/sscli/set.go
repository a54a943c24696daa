package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/format"
)

func newSet() verb {
	var o setFlags
	return verb{
		use:     "set KEY VALUE [NX|NEX] [PX MS]",
		aliases: []string{"put"},
		short:   "Store a value",
		long: `Store a value. Exit code 1 if the condition was not met.

NX stores only if the key does not exist; NEX also if it holds exactly this value.
PX lets the key expire. The options may be written as the protocol writes them, after
the operands, or as flags. A lone - reads the value from standard input: every byte
of it, also a last newline.`,
		example: "  sscli set setpoint 21.5\n  sscli set lock me NEX PX 10000\n  sscli set image - < image.png\n  sscli set door open --fence 001696374425000:00001:StateStore",
		keys:    1,
		flags:   o.bind,
		parse:   o.parse,
		writes:  always,
	}
}

type setFlags struct {
	fencing
	nx, nex, persist bool
	px, ttl, file    config.Text
}

func (o *setFlags) bind(fs *pflag.FlagSet) {
	fs.BoolVar(&o.nx, "nx", false, "only if the key does not exist")
	fs.BoolVar(&o.nex, "nex", false, "only if the key does not exist or holds this value")
	fs.Var(&o.px, "px", "let the key expire after `MS` milliseconds")
	fs.Var(&o.ttl, "ttl", "let the key expire after `DURATION`, such as 500ms or 2m")
	fs.BoolVar(&o.persist, "persist", false, "ask the broker to keep the entry on disk")
	fs.VarP(&o.file, "file", "f", "read the value from `FILE`")
	o.fencing.bind(fs)
}

func (o *setFlags) parse(args []string, in stdin) (request, error) {
	if len(args) == 0 {
		return request{}, usage("no key: want set KEY VALUE")
	}
	key := unprotect(args[0])
	value, rest, err := value(args[1:], string(o.file), in)
	if err != nil {
		return request{}, err
	}
	if err := o.words(rest); err != nil {
		return request{}, err
	}
	options, err := o.options()
	if err != nil {
		return request{}, err
	}
	req := setRequest(key, value, options)
	req.force = o.force
	return req, nil
}

func setRequest(key string, value []byte, options client.SetOptions) request {
	reason := "exists"
	if options.Condition == client.NEX {
		reason = "differs"
	}
	return request{
		commands: []client.Command{client.Set(key, value, options)},
		show: func(_ int, answer client.Result) (format.Result, bool, error) {
			r := answer.(client.SetResult)
			result := format.Set{Key: key, Applied: r.Applied, Version: version(r.Version), RTT: r.RTT}
			if !r.Applied {
				result.Reason = reason
			}
			return result, r.Applied, nil
		},
	}
}

// words reads the options as the protocol writes them.
func (o *setFlags) words(rest []string) error {
	for len(rest) > 0 {
		switch word := unprotect(rest[0]); strings.ToUpper(word) {
		case wire.OptionNX:
			o.nx = true
		case wire.OptionNEX:
			o.nex = true
		case wire.OptionPX:
			if len(rest) == 1 {
				return usage("PX without a number: want PX MS")
			}
			if o.px != "" {
				return usage("PX twice: want it once")
			}
			if err := o.px.Set(unprotect(rest[1])); err != nil {
				return usage("PX %q: %w", rest[1], err)
			}
			rest = rest[1:]
		default:
			return usage("%.64q after the value: want NX, NEX or PX MS, and quotes around a value with spaces", word)
		}
		rest = rest[1:]
	}
	return nil
}

func (o *setFlags) options() (client.SetOptions, error) {
	options := client.SetOptions{Persist: o.persist}
	var err error
	switch {
	case o.nx && o.nex:
		return options, usage("NX together with NEX: want one of them")
	case o.nx:
		options.Condition = client.NX
	case o.nex:
		options.Condition = client.NEX
	}
	switch {
	case o.px != "" && o.ttl != "":
		return options, usage("PX together with --ttl: want one of them")
	case o.px != "":
		ms, err := strconv.ParseInt(string(o.px), 10, 64)
		if err != nil || ms < 1 || ms > int64(maxTTL/time.Millisecond) {
			return options, usage("PX %.32q: want a whole number of milliseconds from 1 to %d", o.px, maxTTL/time.Millisecond)
		}
		options.TTL = time.Duration(ms) * time.Millisecond
	case o.ttl != "":
		options.TTL, err = config.ParseDuration(string(o.ttl))
		if err != nil || options.TTL < time.Millisecond || options.TTL%time.Millisecond != 0 {
			return options, usage("--ttl %.32q: want a duration of whole milliseconds, such as 500ms or 2m", o.ttl)
		}
	}
	options.WriteOptions, err = o.fencing.options()
	return options, err
}

// maxTTL is what a time.Duration holds, 292 years.
const maxTTL = time.Duration(1<<63-1) / time.Millisecond * time.Millisecond
