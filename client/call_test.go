package client_test

import (
	"testing"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

func TestCall(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		for _, test := range []struct {
			words []string
			want  wire.Value
		}{
			{[]string{"SET", "k", "v"}, wire.Value{Kind: wire.SimpleString, Text: []byte("OK")}},
			{[]string{"GET", "k"}, wire.Value{Kind: wire.Blob, Text: []byte("v")}},
			{[]string{"GET", "missing"}, wire.Value{Kind: wire.Null}},
			{[]string{"KEYNOTIFY", "k"}, wire.Value{Kind: wire.SimpleString, Text: []byte("OK")}},
			{[]string{"KEYNOTIFY", "k", "STOP"}, wire.Value{Kind: wire.SimpleString, Text: []byte("OK")}},
			{[]string{"KEYNOTIFY", "k", "STOP"}, wire.Value{Kind: wire.Integer}},
			{[]string{"DEL", "k"}, wire.Value{Kind: wire.Integer, Int: 1}},
		} {
			c := client.Call(test.words)
			r := must(s.Do(t.Context(), c))(t).(client.CallResult)
			if string(wire.AppendValue(nil, r.Value)) != string(wire.AppendValue(nil, test.want)) {
				t.Errorf("%q: got %+v", test.words, r.Value)
			}
			// Only replies to SET and GET must carry a version.
			if len(r.Warnings)+len(r.Notes) > 0 {
				t.Errorf("%q: got %q %q", test.words, r.Warnings, r.Notes)
			}
			if c.Verb() != test.words[0] || c.Key() != test.words[1] {
				t.Errorf("%q: got %q %q", test.words, c.Verb(), c.Key())
			}
		}
		r := must(s.Do(t.Context(), client.Call([]string{"SCAN", "*"})))(t).(client.CallResult)
		if r.Value.Kind != wire.Array {
			t.Errorf("SCAN: got %+v", r.Value)
		}
	})
}

// TestCallIsSentAsItStands: Call sends its arguments unchanged, with their case (protocol.md 2.1) and with
// any mistakes.
func TestCallIsSentAsItStands(t *testing.T) {
	t.Parallel()
	onBoth(t, emulator.Options{}, client.Options{}, func(t *testing.T, _ *emulator.Server, s *client.Session) {
		for _, test := range []struct {
			words []string
			want  wire.ErrorKind
		}{
			{[]string{"get", "k"}, wire.ErrorUnknownCommand},
			{[]string{"MGET", "k"}, wire.ErrorUnknownCommand},
			{[]string{"GET"}, wire.ErrorWrongArguments},
			{[]string{"GET", ""}, wire.ErrorEmptyKey},
			{[]string{"SET", "k"}, wire.ErrorWrongArguments},
			{[]string{"SET", "k", "v", "NEX", "w"}, wire.ErrorWrongArguments},
			{[]string{"SET", "k", "v", "PX", "1.5"}, wire.ErrorSyntax},
		} {
			_, err := s.Do(t.Context(), client.Call(test.words))
			if e := as[*wire.StoreError](t, err); e.Kind() != test.want {
				t.Errorf("%q: got %v", test.words, err)
			}
		}
		if c := client.Call(nil); c.Verb() != "" || c.Key() != "" {
			t.Errorf("got %q %q", c.Verb(), c.Key())
		}
	})
}
