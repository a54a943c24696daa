package redis

import (
	"testing"
)

// TestLongNames: no command copies a long channel or key that is watched, because other clients wait meanwhile.
func TestLongNames(t *testing.T) {
	s, c, _ := unserved(t, Options{Backend: &countedBackend{}})
	c.authenticated = true
	long := make([]byte, 4<<20)
	const refused = "-ERR a channel is longer than 131072 bytes\r\n"
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"subscribe"}, refused}, {[]string{"ssubscribe"}, refused}, {[]string{"unsubscribe"}, refused}, {[]string{"sunsubscribe"}, refused},
		{[]string{"pubsub", "numsub"}, refused}, {[]string{"pubsub", "shardnumsub"}, refused},
		{[]string{"punsubscribe"}, "-" + patternArgs(long).Error() + "\r\n"},
		{[]string{"watch"}, "+OK\r\n"},
	} {
		var args [][]byte
		for _, w := range test.words {
			args = append(args, []byte(w))
		}
		args = append(args, long)
		cmd, _ := s.table.lookup(args)
		c.w, c.mark = make([]byte, 0, 1<<10), 0
		n := allocated(func() {
			if err := cmd.run(c, args); err != nil {
				c.fail(err)
			}
		})
		if n > 1<<20 || string(c.w) != test.want {
			t.Errorf("%s: %d bytes allocated, %.60q, want %q", test.words, n, c.w, test.want)
		}
	}
}
