package lock

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
)

// A processHolder is the holder that a process of sscli generates, by which people can find the process.
type processHolder struct {
	user, host string
	pid        int
	random     string // 16 letters and digits of base32, in lower case
}

func newProcessHolder(env func(string) (string, bool)) processHolder {
	h := processHolder{fmt.Sprintf("uid%d", os.Getuid()), "unknown", os.Getpid(), strings.ToLower(rand.Text()[:16])}
	for _, name := range []string{"USERNAME", "LOGNAME", "USER"} { // in increasing precedence
		if value, ok := env(name); ok && value != "" {
			h.user = value
		}
	}
	if host, err := os.Hostname(); err == nil {
		h.host = host
	}
	return h
}

// String returns the holder as the value of a lock: user@host:pid:random.
func (h processHolder) String() string {
	return fmt.Sprintf("%s@%s:%d:%s", h.user, h.host, h.pid, h.random)
}

// isProcessHolder reports whether a value is the String of a processHolder.
func isProcessHolder(value string) bool {
	process, random, _ := cutLast(value, ":")
	where, pid, _ := cutLast(process, ":")
	h := processHolder{random: random}
	var named bool
	h.user, h.host, named = cutLast(where, "@")
	h.pid, _ = strconv.Atoi(pid)
	return named && h.pid > 0 && len(random) == 16 && strings.Trim(random, "abcdefghijklmnopqrstuvwxyz234567") == "" && value == h.String()
}

// cutLast is like [strings.Cut], at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return text, "", false
}

// newHolder returns the options of a command that holds a lock. Without --holder, it generates a processHolder.
func (f *lockFlags) newHolder(a *app.App) (client.LockOptions, error) {
	o, err := f.options()
	if err == nil && len(o.Holder) == 0 {
		o.Holder = []byte(newProcessHolder(a.Env).String())
	}
	return o, err
}

// longestHolder is the length in bytes of a value that is longer than the holders that locks usually have.
const longestHolder = 256

// notHolder returns why a value is hardly the holder of a lock, or "". sscli writes the client id and a random
// number, Microsoft's SDKs the client id.
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
