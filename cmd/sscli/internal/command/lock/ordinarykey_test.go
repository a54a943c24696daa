package lock

import (
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
)

func TestMayBeHolder(t *testing.T) {
	for value, want := range map[string]bool{
		"job-7": true, "12345": true, "root@host:4242:k3b5": true, "statestore-writer:5d1e": true, "alice@ci": true, "alice": true, "running": true,
		"": false, "21.5": false, "true": false, `{"a":1}`: false, "[1,2]": false, `"job-7"`: false,
		"two words 2": false, "1\n": false, "\xff1": false, "\x001": false,
	} {
		if got := mayBeHolder([]byte(value)); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func TestOrdinaryKeyNote(t *testing.T) {
	token := func(age time.Duration) client.Version {
		return client.Version{Wall: time.Now().Add(-age).UnixMilli(), Node: "StateStore"}
	}
	for _, test := range []struct {
		holder string
		waits  bool
		age    time.Duration
		want   string
	}{
		{"job-7", true, time.Second, ""},
		{"alice", false, time.Second, ""},
		{"running", true, time.Second, `"running" does not look like the name of a holder`},
		{"job-7", false, 3 * time.Minute, "not renewed for 3m0s: the lease is longer, or this is an ordinary key without expiry"},
		{"21.5", false, time.Second, `this may be an ordinary key and no lock: "21.5" does not look like the name of a holder`},
	} {
		got := ordinaryKeyNote(client.LockStatus{Name: "a", Held: true, Holder: []byte(test.holder), Token: token(test.age)}, test.waits)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s after %v: %q, want %q", test.holder, test.age, got, test.want)
		}
	}
	if got := ordinaryKeyNote(client.LockStatus{Name: "a", Held: true}, true); got != "" {
		t.Errorf("an unknown holder: %q", got)
	}
}

func FuzzMayBeHolder(f *testing.F) {
	f.Add([]byte("job-7"))
	f.Add([]byte("\xff\x00"))
	f.Fuzz(func(t *testing.T, value []byte) {
		if mayBeHolder(value) && len(strings.Fields(string(value))) != 1 {
			t.Errorf("%q has not one word", value)
		}
	})
}
