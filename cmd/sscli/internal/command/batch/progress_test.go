package batch

import (
	"testing"
	"time"
)

func TestProgressText(t *testing.T) {
	for _, tt := range []struct {
		lines      int64
		elapsed    time.Duration
		read, size int64
		want       string
	}{
		{0, time.Second, 0, 0, "0 lines, 0/s"},
		{500, 2 * time.Second, 4096, 0, "500 lines, 250/s"},
		{500, 2 * time.Second, 0, 8192, "500 lines, 250/s"},
		{500, 2 * time.Second, 2048, 8192, "500 lines, 250/s, 25%, 6s left"},
		{500, 2 * time.Second, 9000, 8192, "500 lines, 250/s, 100%, 0s left"}, // the file has grown
	} {
		if got := progressText(tt.lines, tt.elapsed, tt.read, tt.size); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
