package main

import (
	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/format"
)

func newCall() verb {
	var fence fencing
	return verb{
		use:   "call ARG...",
		short: "Send any request and print the reply",
		long: `Send the arguments as they are, as a RESP3 array of blobs, and print whatever the store
answers: for what sscli does not know yet. The store wants verbs in upper case.`,
		example: "  sscli call GET setpoint\n  sscli call SCAN 'colors/*'",
		flags:   fence.bind,
		writes:  func(operands []string) bool { return len(operands) > 0 && changesVerb(operands[0]) },
		parse: func(args []string, _ stdin) (request, error) {
			if len(args) == 0 {
				return request{}, usage("no request: want call ARG...")
			}
			options, err := fence.options()
			if err != nil {
				return request{}, err
			}
			words := make([]string, len(args))
			for i, arg := range args {
				words[i] = unprotect(arg)
			}
			req := anyRequest(words, options)
			req.force = fence.force
			return req, nil
		},
	}
}

func anyRequest(words []string, options client.WriteOptions) request {
	return request{
		commands: []client.Command{client.Call(words, options)},
		alone:    true,
		show: func(_ int, result client.Result) (format.Result, bool, error) {
			r := result.(client.CallResult)
			shown := make([][]byte, len(words))
			for i, w := range words {
				shown[i] = []byte(w)
			}
			return format.Reply{Words: shown, Value: shownValue(r.Value), Version: version(r.Version), RTT: r.RTT}, true, nil
		},
	}
}

func shownValue(v wire.Value) format.Value {
	out := format.Value{Kind: format.Kind(v.Kind), Text: v.Text, Int: v.Int}
	for _, item := range v.Items {
		out.Items = append(out.Items, shownValue(item))
	}
	return out
}
