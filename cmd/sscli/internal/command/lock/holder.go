package lock

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
)

// newHolder returns a holder's name that nobody else has, and by which a person finds the
// process: user@host:pid:random. The user is the environment's word, or a number.
func newHolder(a *app.App) []byte {
	user := fmt.Sprintf("uid%d", os.Getuid())
	for _, name := range []string{"USERNAME", "LOGNAME", "USER"} { // the last one counts
		if value, ok := a.Env(name); ok && value != "" {
			user = value
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Appendf(nil, "%s@%s:%d:%s", user, host, os.Getpid(), strings.ToLower(rand.Text()[:16]))
}
