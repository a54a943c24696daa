package watch

import (
	"fmt"
	"testing"

	"github.com/sscli/sscli/client"
)

// TestFieldsOfMissingKeys: a key that a pattern found takes no memory once it is gone, and it is shown when it is found
// again, as the first time.
func TestFieldsOfMissingKeys(t *testing.T) {
	f, err := newFieldView(nil, ".mode")
	if err != nil {
		t.Fatal(err)
	}
	see := func(kind client.EventKind, key, value string) bool {
		e := client.Event{Kind: kind, Key: key}
		if value != "" {
			e.Value, e.HasValue = []byte(value), true
		}
		_, _, isNew := f.compare(e)
		return isNew
	}
	for i := range 10 {
		key := fmt.Sprint("job/", i)
		if !see(client.EventFound, key, `{"mode":1}`) || !see(client.EventDelete, key, "") || !see(client.EventFound, key, `{}`) || see(client.EventDelete, key, "") {
			t.Errorf("%s: a change is missing, or no change was shown", key)
		}
	}
	if len(f.last) != 0 {
		t.Errorf("%d missing keys are remembered", len(f.last))
	}
	if see(client.EventSet, "job/0", `{}`) || !see(client.EventSet, "job/0", "") || !see(client.EventSet, "job/0", `{}`) {
		t.Error("a field that stays missing was shown, or one that was not known was not")
	}
}
