package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/wire"
)

func TestSentinels(t *testing.T) {
	t.Parallel()
	sentinels := []error{client.ErrFenced, client.ErrNotAuthorized, client.ErrQuota, client.ErrClock, client.ErrNoReply, context.DeadlineExceeded}
	for _, test := range []struct {
		err  error
		want []error
	}{
		{&client.StoreError{Text: wire.TextFenceRequired}, []error{client.ErrFenced}},
		{&client.StoreError{Text: wire.TextFenceLower}, []error{client.ErrFenced}},
		{&client.StoreError{Text: wire.TextFenceAhead}, []error{client.ErrFenced, client.ErrClock}},
		{&client.StoreError{Text: wire.TextNotAuthorized}, []error{client.ErrNotAuthorized}},
		{&client.ReasonError{Packet: "PUBACK", Code: 0x87}, []error{client.ErrNotAuthorized}},
		{&client.DialError{Err: &client.ReasonError{Packet: "SUBACK", Code: 0x87}}, []error{client.ErrNotAuthorized}},
		{&client.ReasonError{Packet: "CONNACK", Code: 0x86}, nil},
		{&client.StoreError{Text: wire.TextQuota}, []error{client.ErrQuota}},
		{&client.StoreError{Text: wire.TextClockAhead}, []error{client.ErrClock}},
		{&client.StoreError{Text: "something else"}, nil},
		{&client.LostReplyError{Err: client.ErrNoReply}, []error{client.ErrNoReply, context.DeadlineExceeded}},
		{&client.LostReplyError{Err: context.DeadlineExceeded}, []error{context.DeadlineExceeded}},
	} {
		for _, sentinel := range sentinels {
			for _, err := range []error{test.err, fmt.Errorf("wrapped: %w", test.err)} {
				if got, want := errors.Is(err, sentinel), slices.Contains(test.want, sentinel); got != want {
					t.Errorf("errors.Is(%v, %v): got %t, want %t", err, sentinel, got, want)
				}
			}
		}
	}
}

// TestErrNoReply: the limit of the session is told from the deadline of the caller.
func TestErrNoReply(t *testing.T) {
	t.Parallel()
	store := emulator.Start(t)
	s := dial(t, store, client.Options{Timeout: 2 * time.Second})
	store.Intercept(always(emulator.Action{Drop: true}))
	_, read := s.Get(context.Background(), "k")
	_, written := s.Set(context.Background(), "k", nil)
	f, err := s.Pipeline(1).Send(context.Background(), client.Get("k"))
	if err != nil {
		t.Fatal(err)
	}
	_, piped := f.Wait(context.Background())
	for name, err := range map[string]error{"Get": read, "Set": written, "Pipeline": piped} {
		if !errors.Is(err, client.ErrNoReply) {
			t.Errorf("%s: got %v, want ErrNoReply", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := s.Get(ctx, "k"); errors.Is(err, client.ErrNoReply) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a deadline: got %v", err)
	}
}

func TestOutcomeString(t *testing.T) {
	t.Parallel()
	got := fmt.Sprint(client.OutcomeUnknown, client.NotApplied, client.Fulfilled, client.Outcome(7))
	if want := "unknown not applied fulfilled Outcome(7)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNoAnswerIsNetError: what handles a timeout of package net or context handles ErrNoReply, too.
func TestNoAnswerIsNetError(t *testing.T) {
	t.Parallel()
	if e, ok := errors.AsType[net.Error](client.ErrNoReply); !ok || !e.Timeout() {
		t.Errorf("%v, a net.Error: %t", e, ok)
	}
}
