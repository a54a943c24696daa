package basics

import (
	"github.com/sscli/sscli/cmd/sscli/internal/verb"
	"github.com/sscli/sscli/repl"
)

// Set returns the verb `set`.
func Set(env verb.Env) verb.Verb {
	var f verb.SetFlags
	return verb.Verb{
		Use:     "set KEY VALUE [NX|NEX] [PX MS]",
		Aliases: []string{"put"},
		Short:   "Store a value",
		Long: `Store a value. The exit code is 1 if the condition is not met.

NX stores the value only if the key does not exist. NEX also stores it if the key already
holds exactly this value. PX makes the key expire after MS milliseconds. Write these
options after the operands, as the protocol does, or as flags.

If VALUE is a lone -, set reads it from standard input: every byte, including a final
newline.`,
		Example: "  sscli set setpoint 21.5\n  sscli set lock me NEX PX 10000\n  sscli set image - < image.png\n  sscli set door open --fence 001696374425000:00001:StateStore",
		Keys:    1,
		Flags:   f.Bind,
		Parse: func(operands []repl.Word, in verb.Source) (verb.Request, error) {
			return f.Parse(env, operands, in)
		},
		Writes: verb.Always,
	}
}
