package basics

import (
	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/repl"
)

// Call returns the verb `call`.
func Call(env verb.Env) verb.Verb {
	var fence verb.FenceFlags
	return verb.Verb{
		Use:   "call ARG...",
		Short: "Send any request and print the reply",
		Long: `Send the arguments unchanged, as a RESP3 array of blobs, and print the reply.

Use it for verbs that sscli does not know. The store expects verbs in upper case.`,
		Example: "  sscli call GET setpoint\n  sscli call SCAN 'colors/*'",
		Group:   app.GroupDebug,
		Flags:   fence.Bind,
		Writes:  func(operands []repl.Word) bool { return len(operands) > 0 && wire.Changes(operands[0].Text) },
		Parse: func(operands []repl.Word, _ verb.Source) (verb.Request, error) {
			if len(operands) == 0 {
				return verb.Request{}, fault.Usagef("missing ARG")
			}
			options, err := fence.Options(env)
			if err != nil {
				return verb.Request{}, err
			}
			req := callRequest(repl.Texts(operands), options)
			req.Force = fence.Force
			return req, nil
		},
	}
}

// callRequest returns a request with the given words. The printed result is the store's reply.
func callRequest(words []string, options client.WriteOptions) verb.Request {
	return verb.Request{
		Commands: []client.Command{client.Call(words, options)},
		Alone:    true,
		Result: func(_ *client.Command, result client.Result) (format.Result, bool, error) {
			r := result.(client.CallResult)
			shown := make([][]byte, len(words))
			for i, w := range words {
				shown[i] = []byte(w)
			}
			return format.Reply{Words: shown, Value: r.Value, Version: r.Version, RTT: r.RTT}, true, nil
		},
	}
}
