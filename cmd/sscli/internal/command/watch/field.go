package watch

import (
	"fmt"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/jsonfield"
	"github.com/sscli/sscli/format"
)

// A fieldView remembers one field of the values of keys, for --field.
type fieldView struct {
	app  *app.App
	path jsonfield.Path
	last map[string]lastField // by key; without an entry the field is not known
}

// A lastField is what is known of the field of a key.
type lastField struct {
	value   jsonfield.Value
	notJSON bool // the value was no JSON, and the user was told
}

// newFieldView returns a view of the field at a path; nil for an empty path.
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

// see takes the next event, and reports whether it says anything new of the field. It returns
// what the event says of the field, and an event for --until whose value is the field.
func (f *fieldView) see(e client.Event) (shown format.FieldChange, field client.Event, news bool) {
	shown.Path = f.path.String()
	switch e.Kind {
	case client.EventInitial, client.EventResync, client.EventSet, client.EventDelete:
	default:
		return format.FieldChange{}, e, true // not about a value
	}
	before, known := f.last[e.Key]
	shown.Old = before.value.String()
	if e.Kind == client.EventSet && !e.HasValue {
		delete(f.last, e.Key)
		return shown, client.Event{Kind: client.EventOther}, true // nothing to judge
	}
	var now lastField
	if e.HasValue {
		value, ok := jsonfield.Parse(e.Value)
		now = lastField{value.At(f.path), !ok}
		if !ok && !before.notJSON {
			f.app.Warn(fmt.Sprintf("the value of %s is not JSON: it has no field %s", format.BriefWord(e.Key), shown.Path), "")
		}
	}
	f.last[e.Key] = now
	shown.New = now.value.String()
	news = !known || !jsonfield.Equal(before.value, now.value) ||
		e.Kind == client.EventResync && e.Continuity != client.ContinuityProven
	return shown, client.Event{Key: e.Key, HasValue: now.value.Exists(), Value: []byte(now.value.Text())}, news
}
