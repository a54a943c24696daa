package locklog

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/format"
)

// TestObserver: what an observer concludes from the events of a watch, for each way in which a lock can change hands or
// a watch can miss an event.
func TestObserver(t *testing.T) {
	const whole = 50 * time.Second
	begin := time.Now().Add(-whole)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	token := func(seconds float64) client.Version {
		return client.Version{Wall: at(seconds).UnixMilli(), Node: "StateStore"}
	}
	initial := func(holder string, issued float64) client.Event {
		return client.Event{Kind: client.EventInitial, Time: begin, Value: []byte(holder), HasValue: true, Version: token(issued)}
	}
	set := func(holder string, seconds float64) client.Event {
		return client.Event{Kind: client.EventSet, Time: at(seconds), Value: []byte(holder), HasValue: true, Version: token(seconds)}
	}
	unversioned := func(e client.Event) client.Event { e.Version = client.Version{}; return e }
	resync := func(e client.Event) client.Event { e.Kind = client.EventResync; return e }
	deleted := func(seconds float64) client.Event { return client.Event{Kind: client.EventDelete, Time: at(seconds)} }
	held := func(holder string, issued float64) format.LockStatus {
		return format.LockStatus{Held: true, Holder: holder, Token: token(issued)}
	}
	tests := []struct {
		name   string
		events []client.Event
		now    format.LockStatus
		want   format.Renewals
		seen   bool // the age is known from a notification
	}{
		{"never", []client.Event{initial("a", -5)}, held("a", -5), format.Renewals{Observed: whole}, false},
		{"once", []client.Event{initial("a", -1), set("a", 3)}, held("a", 3), format.Renewals{Observed: whole, Seen: 1, Every: 4 * time.Second}, true},
		{"often", []client.Event{initial("a", -1), set("a", 2), set("a", 6), set("a", 8)}, held("a", 8), format.Renewals{Observed: whole, Seen: 3, Every: 3 * time.Second}, true},
		{"not announced", []client.Event{initial("a", -1)}, held("a", 8), format.Renewals{Observed: whole, Seen: 1}, false},
		{"without a value", []client.Event{initial("a", -1), {Kind: client.EventSet, Time: at(2), Version: token(2)}}, held("a", 2), format.Renewals{Observed: whole, Seen: 1}, false},
		{"without a version", []client.Event{unversioned(initial("a", 0)), unversioned(set("a", 2)), unversioned(set("a", 5))}, held("a", 5), format.Renewals{Observed: whole, Seen: 2, Every: 3 * time.Second}, true},
		{"in a break", []client.Event{initial("a", -1), set("a", 2), resync(set("a", 9))}, held("a", 9), format.Renewals{Observed: whole, Seen: 2, Every: 3 * time.Second}, false},
		{"proven by a break", []client.Event{initial("a", -1), set("a", 2), resync(set("a", 2))}, held("a", 2), format.Renewals{Observed: whole, Seen: 1, Every: 3 * time.Second}, true},
		{"by another", []client.Event{initial("a", -1), set("a", 2), deleted(3), set("b", 4)}, held("b", 4), format.Renewals{Observed: 46 * time.Second}, true},
		{"acquired anew", []client.Event{initial("a", -1), set("a", 2), deleted(3), set("a", 4)}, held("a", 4), format.Renewals{Observed: 46 * time.Second}, true},
		{"taken since", []client.Event{initial("a", -1), set("a", 2)}, held("b", 9), format.Renewals{Observed: whole}, false},
		{"free", []client.Event{initial("a", -1), set("a", 2), deleted(3)}, format.LockStatus{}, format.Renewals{Observed: whole}, false},
		{"an unknown word", []client.Event{initial("a", -1), {Kind: client.EventOther, Time: at(2), Version: token(2)}}, held("a", -1), format.Renewals{Observed: whole}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := &Observer{since: begin}
			for _, e := range test.events {
				o.See(e)
			}
			got := test.now
			o.AddTo(&got, whole)
			if late := got.Renewals.Observed - test.want.Observed; late > 0 && late < time.Minute { // measured up to now
				got.Renewals.Observed = test.want.Observed
			}
			if diff := cmp.Diff(test.want, got.Renewals); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Seen != test.seen {
				t.Errorf("the age is from a notification: %v, want %v", got.Seen, test.seen)
			}
		})
	}
}
