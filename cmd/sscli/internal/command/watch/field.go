package watch

import (
	"fmt"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/jsonfield"
	"github.com/sscli/sscli/format"
)

// A fieldView tracks the field of --field in the values of keys.
type fieldView struct {
	app  *app.App
	path jsonfield.Path
	last map[string]lastField // by key; without an entry, the field is missing
}

// A lastField is the last known value of a field.
type lastField struct {
	value   jsonfield.Value
	unknown bool // the store did not send the value of the key
	notJSON bool // the value of the key was not JSON, and the user was warned
}

// newFieldView returns a fieldView for a path, or nil if the path is empty.
func newFieldView(a *app.App, path string) (*fieldView, error) {
	if path == "" {
		return nil, nil
	}
	p, err := jsonfield.ParsePath(path)
	if err != nil {
		return nil, fault.Usagef("--field %.64q: %w", path, err)
	}
	return &fieldView{app: a, path: p, last: make(map[string]lastField)}, nil
}

// compare compares the field in an event with its last value. shown is the change of the field.
// field is the event that --until tests, whose value is the field as JSON. isNew reports whether to show e.
func (f *fieldView) compare(e client.Event) (shown format.FieldChange, field client.Event, isNew bool) {
	shown.Path = f.path.String()
	switch e.Kind {
	case client.EventInitial, client.EventFound, client.EventResync, client.EventSet, client.EventDelete:
	default:
		return format.FieldChange{}, e, true // events of other kinds have no value
	}
	before := f.last[e.Key]
	shown.Old = before.value.String()
	if e.Kind == client.EventSet && !e.HasValue {
		f.last[e.Key] = lastField{unknown: true}
		return shown, client.Event{Kind: client.EventOther}, true // the notification had no value
	}
	var now lastField
	if e.HasValue {
		value, ok := jsonfield.Parse(e.Value)
		now = lastField{value: value.At(f.path), notJSON: !ok}
		if !ok && !before.notJSON {
			f.app.Warn(fmt.Sprintf("the value of %s is not JSON: it has no field %s", format.BriefWord(e.Key), shown.Path))
		}
	}
	if f.last[e.Key] = now; !e.HasValue {
		delete(f.last, e.Key) // or the keys that a pattern has ever found would fill the memory
	}
	shown.New = now.value.String()
	isNew = e.Kind == client.EventInitial || e.Kind == client.EventFound || before.unknown || !jsonfield.Equal(before.value, now.value) ||
		e.Kind == client.EventResync && e.Continuity != client.ContinuityProven
	return shown, client.Event{Key: e.Key, HasValue: now.value.Exists(), Value: []byte(now.value.String())}, isNew
}
