package process

import (
	"os"
	"strings"
)

// environ is the environment of a child: ours with some variables set and some
// left out.
func Environ(set map[string]string, drop ...string) []string {
	gone := make(map[string]bool)
	for _, name := range drop {
		gone[name] = true
	}
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if _, replaced := set[name]; !replaced && !gone[name] {
			env = append(env, kv)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}
