package verb

import (
	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/fence"
	"github.com/sscli/sscli/format"
)

// newCall returns the verb `call`.
func newCall() Verb {
	var fence fence.Flags
	return Verb{
		use:   "call ARG...",
		short: "Send any request and print the reply",
		long: `Send the arguments unchanged, as a RESP3 array of blobs, and print the reply.

Use it for verbs that sscli does not know. The store expects verbs in upper case.`,
		example: "  sscli call GET setpoint\n  sscli call SCAN 'colors/*'",
		group:   app.GroupDebug,
		Flags:   fence.Bind,
		Writes:  func(operands []string) bool { return len(operands) > 0 && changesVerb(operands[0]) },
		Parse: func(args []string, _ app.Source, _ []client.Command) (Request, error) {
			if len(args) == 0 {
				return Request{}, fault.Usagef("missing ARG")
			}
			options, err := fence.Options()
			if err != nil {
				return Request{}, err
			}
			words := make([]string, len(args))
			for i, arg := range args {
				words[i] = app.Unprotect(arg)
			}
			req := anyRequest(words, options)
			req.Force = fence.Force
			return req, nil
		},
	}
}

// anyRequest returns a request of any words. Its reply is shown as it is.
func anyRequest(words []string, options client.WriteOptions) Request {
	return Request{
		Commands: []client.Command{client.Call(words, options)},
		Alone:    true,
		Show: func(_ *client.Command, result client.Result) (format.Result, bool, error) {
			r := result.(client.CallResult)
			shown := make([][]byte, len(words))
			for i, w := range words {
				shown[i] = []byte(w)
			}
			return format.Reply{Words: shown, Value: shownValue(r.Value), Version: app.Version(r.Version), RTT: r.RTT}, true, nil
		},
	}
}

// shownValue turns a RESP3 value into one that can be printed.
func shownValue(v wire.Value) format.Value {
	out := format.Value{Kind: format.Kind(v.Kind), Text: v.Text, Int: v.Int}
	for _, item := range v.Items {
		out.Items = append(out.Items, shownValue(item))
	}
	return out
}
