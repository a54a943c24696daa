package lock

import (
	"testing"
	"time"
)

func TestLeaseText(t *testing.T) {
	for _, tt := range []struct {
		renewed   bool
		ago, left time.Duration
		want      string
	}{
		{false, 0, 15 * time.Second, `lock "build": acquired 0.0s ago, expires in 15.0s`},
		{true, 3199 * time.Millisecond, 11801 * time.Millisecond, `lock "build": renewed 3.1s ago, expires in 11.8s`},
		{true, 61 * time.Second, 239 * time.Second, `lock "build": renewed 1m1.0s ago, expires in 3m59.0s`},
		{true, 16 * time.Second, -time.Second, `lock "build": renewed 16.0s ago, expired`},
	} {
		if got := leaseText("build", tt.renewed, tt.ago, tt.left); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
