package redis

import (
	"bufio"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestAgeAndIdle: CLIENT LIST and CLIENT INFO count the whole seconds since a client connected and since its last
// request. It runs in virtual time.
func TestAgeAndIdle(t *testing.T) {
	t.Parallel()
	inBubble(t, Options{}, func(t *testing.T, s *Server) {
		one := pipeTo(t, s)
		time.Sleep(5 * time.Second)
		one.do("PING", "+PONG")
		time.Sleep(2500 * time.Millisecond)
		other := pipeTo(t, s)
		times := regexp.MustCompile(`age=\d+ idle=\d+`)
		for _, test := range []struct {
			client piped
			line   string
			want   string
		}{
			{other, "CLIENT LIST", "[age=7 idle=2 age=0 idle=0]"},
			{one, "CLIENT INFO", "[age=7 idle=0]"},
		} {
			if _, err := fmt.Fprintf(test.client, "%s\r\n", test.line); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(test.client)
			var lines strings.Builder
			for { // to the empty line after the last client
				line, err := r.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if line == "\r\n" {
					break
				}
				lines.WriteString(line)
			}
			if got := fmt.Sprint(times.FindAllString(lines.String(), -1)); got != test.want {
				t.Errorf("%s: %s, want %s", test.line, got, test.want)
			}
		}
	})
}
