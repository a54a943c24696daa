package sources

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestInterrupted ends the reading of a data set: the records that were read are no value.
func TestInterrupted(t *testing.T) {
	tree(t, map[string]string{"many.csv": "id,name\n" + strings.Repeat("1,x\n", 1000)})
	stop := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	value, err := (&file{key: "many", name: "many.csv", dataset: true}).content(ctx, true)
	if value != nil || err != stop {
		t.Errorf("%d bytes, %v; want none and the cause of the context", len(value), err)
	}
}
