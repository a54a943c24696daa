package client

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
)

// TestJSONRoundTrip: values that carry a version survive JSON.
func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	v, err := ParseVersion("001696374425000:00001:StateStore")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	info := ReplyInfo{Version: v, RTT: time.Second, Notes: []string{"note"}}
	for _, want := range []any{
		v, info,
		GetResult{ReplyInfo: info, Value: []byte("\xff"), Found: true},
		SetResult{ReplyInfo: info, Applied: true},
		DelResult{ReplyInfo: info, Deleted: true},
		VDelResult{ReplyInfo: info, Found: true},
		ScanResult{ReplyInfo: info, Keys: []string{"k"}, Next: []byte("t")},
		ScanResult{ReplyInfo: info, Keys: []string{"a\xff", "", "b"}},
		CallResult{ReplyInfo: info},
		CallResult{ReplyInfo: info, Value: Value{Kind: '*', Items: []Value{{Kind: '$', Text: []byte("\xff")}, {Kind: ':', Int: -1}}}},
		ReadBackResult{Outcome: Fulfilled, Now: GetResult{ReplyInfo: info, Found: true}},
		ReadBackResult{Outcome: Fulfilled, Now: GetResult{ReplyInfo: info, Found: true}, Result: SetResult{ReplyInfo: info, Applied: true}},
		ReadBackResult{Outcome: Fulfilled, Result: CallResult{ReplyInfo: info, Value: Value{Kind: '+', Text: []byte("OK")}}},
		WriteOptions{Fence: v},
		SetOptions{WriteOptions: WriteOptions{Fence: v}, Condition: NX},
		Lease{Holder: []byte("me"), Token: v, Sent: at, Term: at, Until: at},
		LockStatus{Name: "l", Held: true, Token: v},
		LockStatus{Name: "\xff", Held: true, Token: v},
		LockBusyError{Status: LockStatus{Token: v}},
		NotHolderError{Status: LockStatus{Token: v}},
		Event{Kind: EventSet, Key: "k", Time: at, Version: v, Value: []byte("1"), HasValue: true},
		Event{Kind: EventOther, Key: "a\xff\xfeb", Time: at, Word: "\x80"},
		Event{Kind: EventError, Key: "k", Time: at, Version: v, Err: errors.New("why")},
		Event{Kind: EventGap, Continuity: ContinuityLost, From: at, To: at},
		emulator.Response{Payload: []byte("+OK"), Version: v},
		emulator.Entry{Value: []byte("1"), Version: v, Fence: v},
		emulator.Change{Key: "k", Version: v, Time: at},
		emulator.Change{Key: "a\xff", Value: []byte("1"), Version: v, Time: at},
	} {
		data, err := json.Marshal(want)
		if err != nil {
			t.Errorf("%T: %v", want, err)
			continue
		}
		got := reflect.New(reflect.TypeOf(want))
		if err := json.Unmarshal(data, got.Interface()); err != nil || !reflect.DeepEqual(got.Elem().Interface(), want) {
			t.Errorf("%T: got %+v, %v, from %s", want, got.Elem(), err, data)
		}
	}
}
