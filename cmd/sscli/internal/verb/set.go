package verb

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/repl"
)

// SetFlags are the flags of `set`. Other commands that write keys have some of them.
type SetFlags struct {
	FenceFlags
	nx, nex, persist bool
	px               config.Text
	file             config.File
	ttl              usage.Duration
}

// Bind defines the flags in fs.
func (f *SetFlags) Bind(fs *pflag.FlagSet) {
	fs.BoolVar(&f.nx, "nx", false, "store only if the key does not exist")
	fs.BoolVar(&f.nex, "nex", false, "store only if the key does not exist or holds this value")
	fs.Var(&f.px, "px", "make the key expire after `MS` milliseconds")
	fs.Var(f.ttl.Least(usage.Signed), "ttl", "make the key expire after `DURATION`, such as 500ms or 2m")
	fs.BoolVar(&f.persist, "persist", false, "ask the broker to keep the entry on disk")
	fs.VarP(&f.file, "file", "f", "read the value from `FILE`")
	f.FenceFlags.Bind(fs)
}

// Parse parses the operands of `set`; see Verb.Parse.
func (f *SetFlags) Parse(env Env, operands []repl.Word, in Source) (Request, error) {
	if len(operands) == 0 {
		return Request{}, fault.Usagef("missing KEY and VALUE")
	}
	key := operands[0].Text
	value, rest, err := Value(operands[1:], string(f.file), in)
	if err != nil {
		return Request{}, err
	}
	if len(rest) > 0 {
		more := *f // the operands add options for this request only
		f = &more
		if err := f.words(rest); err != nil {
			return Request{}, err
		}
	}
	options, err := f.Options(env)
	if err != nil {
		return Request{}, err
	}
	req := SetRequest(key, value, options)
	req.Force = f.Force
	return req, nil
}

// SetRequest returns the request that sets a key to a value.
func SetRequest(key, value string, options client.SetOptions) Request {
	req := Request{Commands: []client.Command{client.Set(key, value, options)}, Result: resultNX}
	if options.Condition == client.NEX {
		req.Result = resultNEX
	}
	return req
}

func resultNX(c *client.Command, result client.Result) (format.Result, bool, error) {
	return setResult(c, result, "exists")
}

func resultNEX(c *client.Command, result client.Result) (format.Result, bool, error) {
	return setResult(c, result, "differs")
}

// setResult converts the result of a command for printing. If the value was not stored, reason says why.
func setResult(c *client.Command, result client.Result, reason string) (format.Result, bool, error) {
	r := result.(client.SetResult)
	shown := format.Set{Key: c.Key(), Applied: r.Applied, Version: r.Version, RTT: r.RTT}
	if !r.Applied {
		shown.Reason = reason
	}
	return shown, r.Applied, nil
}

// words parses the options after the value, such as NX and PX 1000.
func (f *SetFlags) words(rest []repl.Word) error {
	for len(rest) > 0 {
		switch word := rest[0].Text; strings.ToUpper(word) {
		case wire.OptionNX:
			f.nx = true
		case wire.OptionNEX:
			f.nex = true
		case wire.OptionPX:
			if len(rest) == 1 {
				return fault.Usagef("PX without a time: expected PX and milliseconds")
			}
			if f.px != "" {
				return fault.Usagef("PX twice: use it once")
			}
			if err := f.px.Set(rest[1].Text); err != nil {
				return fault.Usagef("PX %q: %w", rest[1].Text, err)
			}
			rest = rest[1:]
		case "EX":
			ttl, omit := "10s", []string{word}
			if len(rest) > 1 {
				if n, err := strconv.ParseUint(rest[1].Text, 10, 32); err == nil {
					ttl, omit = fmt.Sprintf("%ds", n), []string{word, rest[1].Text}
				}
			}
			hint := suggest.Try("`--ttl DURATION in place of WORDS...`").Fill(suggest.Duration, ttl).Fill(suggest.Words, omit...)
			return &fault.UsageError{Err: fmt.Errorf("%.64q after the value: the expiry is --ttl, or PX and milliseconds", word), Hint: hint}
		default:
			return fault.Usagef("%.64q after the value: expected NX, NEX or PX MS, and quotes around a value with spaces", word)
		}
		rest = rest[1:]
	}
	return nil
}

// Options checks the flags, and returns them as options. The error is a usage error.
func (f *SetFlags) Options(env Env) (client.SetOptions, error) {
	options := client.SetOptions{Persist: f.persist}
	var err error
	switch {
	case f.nx && f.nex:
		return options, fault.Usagef("NX together with NEX: use only one of them")
	case f.nx:
		options.Condition = client.NX
	case f.nex:
		options.Condition = client.NEX
	}
	switch {
	case f.px != "" && f.ttl.Given():
		return options, fault.Usagef("PX together with --ttl: use only one of them")
	case f.px != "":
		ms, err := strconv.ParseInt(string(f.px), 10, 64)
		if err != nil || ms < 1 || ms > int64(maxTTL/time.Millisecond) {
			return options, fault.Usagef("PX %.32q: expected a whole number of milliseconds from 1 to %d", f.px, maxTTL/time.Millisecond)
		}
		options.TTL = time.Duration(ms) * time.Millisecond
	case f.ttl.Given():
		if options.TTL = f.ttl.Duration; options.TTL < time.Millisecond || options.TTL%time.Millisecond != 0 {
			return options, fault.Usagef("--ttl %s: expected whole milliseconds, at least 1ms", f.ttl)
		}
	}
	options.WriteOptions, err = f.FenceFlags.Options(env)
	return options, err
}

// maxTTL is the longest time.Duration in whole milliseconds, about 292 years.
const maxTTL = time.Duration(1<<63-1) / time.Millisecond * time.Millisecond
