//go:build full

// It takes 40 s of CPU to compile go-redis, so only CI does.

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

func TestGoRedis(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			s := emulator.Start(t, emulator.Options{Redis: "127.0.0.1:0", RedisNotify: "KEA", CheckLogin: emulator.Passwords(map[string]string{"ann": "secret"})})
			ctx, cancel := context.WithTimeout(context.Background(), redistest.Patience)
			defer cancel()
			r := redis.NewClient(&redis.Options{Addr: redistest.Address(s.RedisURL()), Protocol: protocol, Username: "ann", Password: "secret",
				DialTimeout: redistest.Patience, ReadTimeout: redistest.Patience, WriteTimeout: redistest.Patience})
			defer r.Close()
			sub := r.Subscribe(ctx, "__keyspace@0__:k")
			defer sub.Close()
			if _, err := sub.Receive(ctx); err != nil {
				t.Fatal(err)
			}
			if err := r.Set(ctx, "k", "v", time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"set", "expire"} {
				if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != want {
					t.Fatalf("%v, %v, want %s", m, err, want)
				}
			}
			if got, err := r.Get(ctx, "k").Result(); err != nil || got != "v" {
				t.Errorf("%q, %v", got, err)
			}
			if _, err := r.Get(ctx, "nothing").Result(); !errors.Is(err, redis.Nil) {
				t.Errorf("a missing key: %v", err)
			}
			cmds, err := r.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Incr(ctx, "n")
				p.IncrBy(ctx, "n", 41)
				return nil
			})
			if err != nil || cmds[1].(*redis.IntCmd).Val() != 42 {
				t.Errorf("%v, %v", cmds, err)
			}
			err = r.Watch(ctx, func(tx *redis.Tx) error {
				if _, err := s.Set("k", "meanwhile"); err != nil {
					return err
				}
				_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, "k", "mine", 0).Err() })
				return err
			}, "k")
			if !errors.Is(err, redis.TxFailedErr) {
				t.Errorf("a watched key that changed: %v", err)
			}
			var keys []string
			for it := r.Scan(ctx, 0, "*", 1).Iterator(); it.Next(ctx); {
				keys = append(keys, it.Val())
			}
			if !slices.Equal(keys, []string{"k", "n"}) {
				t.Errorf("keys %q", keys)
			}
			if got, err := r.ConfigGet(ctx, "notify-keyspace-events").Result(); err != nil || got["notify-keyspace-events"] != "AKE" {
				t.Errorf("%v, %v", got, err)
			}
			if got, err := r.Do(ctx, "SS.GET", "n").Slice(); err != nil || len(got) != 2 || got[0] != "42" {
				t.Errorf("%v, %v", got, err)
			}
			// Closed connections are opened again.
			if err := r.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no").Err(); err != nil {
				t.Error(err)
			}
			if err := r.Ping(ctx).Err(); err != nil {
				t.Errorf("after the connections were killed: %v", err)
			}
		})
	}
}
