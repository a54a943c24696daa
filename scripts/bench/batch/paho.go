//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/eclipse/paho.golang/paho"

	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/scripts/harness"
)

// pahoSets does what batch does, but with paho's client: it runs the set commands on standard
// input, with up to inflight requests in flight, and prints the replies.
func pahoSets(ctx context.Context, address string, inflight int) error {
	room := make(chan struct{}, inflight)
	enter := func() error {
		select {
		case room <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	out := bufio.NewWriter(os.Stdout)
	p, err := harness.DialPaho(ctx, address, func(m *paho.Publish) {
		if _, err := wire.ParseReply(m.Payload); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return // the request stays in flight, so that the last loop fails when ctx ends
		}
		fmt.Fprintf(out, "OK\t%s\n", m.Properties.User.Get(wire.PropTimestamp))
		<-room
	})
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		request, err := p.Request(wire.VerbSet, words[1], words[2])
		if err != nil {
			return err
		}
		if err := enter(); err != nil {
			return err
		}
		if _, err := p.Client.PublishWithOptions(ctx, request, paho.PublishOptions{Method: paho.PublishMethod_AsyncSend}); err != nil {
			return err
		}
	}
	for range inflight { // wait until all requests are answered
		if err := enter(); err != nil {
			return err
		}
	}
	if err := p.Close(); err != nil {
		return err
	}
	return out.Flush()
}
