package lock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"unicode"
	"unicode/utf8"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
)

// newHolder returns the options of a command that holds a lock. Without --holder, the name of the holder is generated:
// user@host:pid, by which people can find the process, and what [client.LockOptions] adds.
func (f *lockFlags) newHolder(a *app.App) (client.LockOptions, error) {
	o, err := f.options()
	user, host := fmt.Sprintf("uid%d", os.Getuid()), "unknown"
	for _, name := range []string{"USERNAME", "LOGNAME", "USER"} { // in increasing precedence
		if value, ok := a.Env(name); ok && value != "" {
			user = value
		}
	}
	if name, hostErr := os.Hostname(); hostErr == nil {
		host = name
	}
	o.HolderName = fmt.Sprintf("%s@%s:%d", user, host, os.Getpid())
	return o, err
}

// longestHolder is the length in bytes of a value that is longer than the holders that locks usually have.
const longestHolder = 256

// notHolder returns why a value is hardly the holder of a lock, or "". sscli writes what
// [client.LockOptions] say, Microsoft's SDKs the client id.
func notHolder(value []byte) string {
	switch {
	case len(value) == 0:
		return "is empty"
	case len(value) > longestHolder:
		return fmt.Sprintf("has %d bytes", len(value))
	case !utf8.Valid(value) || bytes.ContainsFunc(value, unicode.IsControl):
		return "is not a line of text"
	case (value[0] == '{' || value[0] == '[') && json.Valid(value):
		return "is JSON"
	}
	return ""
}
