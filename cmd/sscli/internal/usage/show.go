package usage

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
)

// BindShow defines the flag --show, which selects how the human form shows values.
func BindShow(fs *pflag.FlagSet, show *format.Show) {
	fs.Var(show, "show", "show values as `FORM`: text, json, hex or quoted (default: chosen for each value)")
}

// CheckShow returns a usage error if --show was given for a form of output that ignores it.
func CheckShow(show format.Show, output string) error {
	if show != "" && output != "human" {
		form, _, _ := strings.Cut(output, "=")
		return &fault.UsageError{Err: fmt.Errorf("--show %s is for the human form, and the output is %s", show, form), Hint: suggest.Try("`-o human`")}
	}
	return nil
}
