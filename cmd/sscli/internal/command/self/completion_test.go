package self

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sscli/sscli/cmd/sscli/internal/complete"
)

// TestChanges: the scripts set the variable and test the directive of package complete.
func TestChanges(t *testing.T) {
	for shell, texts := range map[string][]string{
		"bash": {complete.QuotesVariable + "=" + complete.Escapes + " ", fmt.Sprintf("(directive & %d) != 0", complete.Command)},
		"zsh":  {complete.QuotesVariable + "=1 ", fmt.Sprintf("(directive & %d) != 0", complete.Command)},
		"fish": {complete.QuotesVariable + "=1 ", fmt.Sprintf(" / %d) %% 2)", complete.Command)},
	} {
		all := fmt.Sprint(changes(shell))
		for _, text := range texts {
			if !strings.Contains(all, text) {
				t.Errorf("%s: no %q", shell, text)
			}
		}
	}
}
