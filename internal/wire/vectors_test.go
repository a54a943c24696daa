package wire_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/internal/wire"
)

// vectorChecks has a check for each kind of line in testdata/vectors.txt. Kinds with a VALUE get it as the
// rest of the line, the others as fields.
var vectorChecks = map[string]func(v *vector) error{
	"request":          checkRequest,
	"badrequest":       func(v *vector) error { return v.refused(parseRequestErr) },
	"reply":            func(v *vector) error { return checkReply(v, true, false) },
	"readreply":        func(v *vector) error { return checkReply(v, false, false) },
	"loosereply":       func(v *vector) error { return checkReply(v, false, true) },
	"badreply":         func(v *vector) error { return v.refused(parseReplyErr) },
	"error":            func(v *vector) error { return checkStoreError(v, true, false) },
	"readerror":        func(v *vector) error { return checkStoreError(v, false, false) },
	"looseerror":       func(v *vector) error { return checkStoreError(v, false, true) },
	"notify":           func(v *vector) error { return checkNotification(v, true) },
	"readnotify":       func(v *vector) error { return checkNotification(v, false) },
	"badnotify":        func(v *vector) error { return v.refused(parseNotificationErr) },
	"hlc":              func(v *vector) error { return checkVersion(v, true) },
	"readhlc":          func(v *vector) error { return checkVersion(v, false) },
	"badhlc":           checkBadVersion,
	"token":            checkToken,
	"badtoken":         checkBadToken,
	"requesttopic":     func(v *vector) error { return same(wire.RequestTopic, v.text()) },
	"responsetopic":    checkResponseTopic,
	"allowed":          func(v *vector) error { return wire.CheckResponseTopic(v.text()) },
	"forbidden":        checkForbidden,
	"badresponsetopic": checkBadResponseTopic,
	"notifytopic":      func(v *vector) error { return checkNotifyTopic(v, true) },
	"readnotifytopic":  func(v *vector) error { return checkNotifyTopic(v, false) },
	"notifyfilter":     checkNotifyFilter,
	"nonotifytopic":    checkNoNotifyTopic,
	"clientid":         func(v *vector) error { return wire.CheckClientID(v.text()) },
	"badclientid":      checkBadClientID,
	"name":             checkName,
}

var vectorSections = []string{
	"requests", "replies", "errors", "notifications", "scan", "versions", "topics", "names",
}

func TestHandWrittenVectorsHoldInBothDirections(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.txt")
	if err != nil {
		t.Fatal(err)
	}
	announced, ran, total := map[string]int{}, map[string]int{}, 0
	section := ""
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case line == "" || line[0] == '#':
			continue
		case line[0] == '[':
			var n int
			if _, err := fmt.Sscanf(line, "[%s %d]", &section, &n); err != nil || announced[section] > 0 {
				t.Fatalf("line %d: bad or repeated section %q: %v", i+1, line, err)
			}
			announced[section] = n
			continue
		}
		kind, rest, _ := strings.Cut(line, " ")
		check := vectorChecks[kind]
		if check == nil || section == "" {
			t.Fatalf("line %d: kind %q is unknown or stands before the first section", i+1, kind)
		}
		v := &vector{rest: rest}
		err := check(v)
		if v.err != nil {
			t.Fatalf("line %d: %s: cannot be read: %v", i+1, kind, v.err)
		}
		if err == nil && v.rest != "" {
			t.Fatalf("line %d: %s: has more fields than its kind: %s", i+1, kind, v.rest)
		}
		if err != nil {
			t.Errorf("line %d: %s\n%v", i+1, line, err)
		}
		ran[section]++
		total++
	}
	for _, s := range vectorSections {
		if ran[s] == 0 {
			t.Errorf("section %q: expected at least one vector", s)
		}
	}
	if len(announced) != len(vectorSections) {
		t.Errorf("got %d sections, want %q", len(announced), vectorSections)
	}
	if diff := cmp.Diff(announced, ran); diff != "" {
		t.Errorf("vectors a section (-announced +ran):\n%s", diff)
	}
	t.Logf("%d vectors: %v", total, ran)
}

// A vector is the unread rest of a line. err is the first error in reading a field.
type vector struct {
	rest string
	err  error
}

// text reads a quoted field.
func (v *vector) text() string {
	quoted, err := strconv.QuotedPrefix(v.rest)
	if err != nil || quoted[0] != '"' {
		v.fail("want a quoted text, got %q", v.rest)
		return ""
	}
	s, err := strconv.Unquote(quoted)
	if err != nil {
		v.fail("%s: %v", quoted, err)
	}
	v.rest = strings.TrimPrefix(v.rest[len(quoted):], " ")
	return s
}

// word reads an unquoted field.
func (v *vector) word() string {
	w, rest, _ := strings.Cut(v.rest, " ")
	if w == "" || w[0] == '"' {
		v.fail("want a word, got %q", v.rest)
	}
	v.rest = rest
	return w
}

// all reads the rest of the line.
func (v *vector) all() string {
	s := v.rest
	v.rest = ""
	return s
}

func (v *vector) fail(format string, args ...any) {
	if v.err == nil {
		v.err = fmt.Errorf(format, args...)
	}
	v.rest = ""
}

// refused checks that the bytes are a syntax error at the offset of the line.
func (v *vector) refused(parse func([]byte) error) error {
	payload, offset := v.text(), v.word()
	return syntaxErrorAt(parse([]byte(payload)), offset)
}

func checkRequest(v *vector) error {
	payload := v.text()
	var want []string
	for v.rest != "" {
		want = append(want, v.text())
	}
	words, err := wire.ParseRequest([]byte(payload))
	if err != nil {
		return err
	}
	got := make([]string, len(words))
	for i, w := range words {
		got[i] = string(w)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("words (-want +got):\n%s", diff)
	}
	if err := same(string(wire.AppendRequest(nil, want...)), payload); err != nil {
		return err
	}
	return same(string(wire.AppendRequest([]byte("x"), words...)), "x"+payload)
}

func checkReply(v *vector, canonical, loose bool) error {
	payload, want := v.text(), v.all()
	r, err := wire.ParseReply([]byte(payload))
	if err != nil {
		return err
	}
	if err := same(show(r.Value), want); err != nil {
		return err
	}
	if err := checkForm(r, loose); err != nil {
		return err
	}
	return encodes(string(wire.AppendValue(nil, r.Value)), payload, canonical)
}

func checkForm(r wire.Reply, loose bool) error {
	if loose != (r.Note != "") {
		return fmt.Errorf("note %q: want one %v", r.Note, loose)
	}
	return nil
}

// encodes checks that our encoder writes exactly these bytes, or different ones if the line says so.
func encodes(got, payload string, canonical bool) error {
	if canonical {
		return same(got, payload)
	}
	if got == payload {
		return fmt.Errorf("we write it so: the kind of the line is wrong")
	}
	return nil
}

func checkStoreError(v *vector, canonical, loose bool) error {
	payload, kind, text := v.text(), v.word(), v.text()
	r, err := wire.ParseReply([]byte(payload))
	if err != nil {
		return err
	}
	got := r.StoreError()
	if got == nil {
		return fmt.Errorf("got no store error but %s", show(r.Value))
	}
	if diff := cmp.Diff(&wire.StoreError{Text: text}, got); diff != "" {
		return fmt.Errorf("(-want +got):\n%s", diff)
	}
	if err := same(string(got.Kind()), kind); err != nil {
		return err
	}
	if err := checkForm(r, loose); err != nil {
		return err
	}
	return encodes(string(wire.AppendError(nil, text)), payload, canonical)
}

func checkNotification(v *vector, canonical bool) error {
	payload, want := v.text(), wire.Notification{Op: wire.Op(v.text())}
	if v.rest != "" {
		want.Value, want.HasValue = []byte(v.text()), true
	}
	got, err := wire.ParseNotification([]byte(payload))
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("(-want +got):\n%s", diff)
	}
	return encodes(string(wire.AppendNotification(nil, want)), payload, canonical)
}

func checkVersion(v *vector, canonical bool) error {
	text, wall, counter, node := v.text(), v.word(), v.word(), v.text()
	got, err := wire.ParseVersion(text)
	if err != nil {
		return err
	}
	parts := fmt.Sprintf("%d %d %q", got.Wall, got.Counter, got.Node)
	if err := same(parts, fmt.Sprintf("%s %s %q", wall, counter, node)); err != nil {
		return err
	}
	if err := same(got.String(), text); err != nil {
		return fmt.Errorf("the text is not kept: %w", err)
	}
	fresh := wire.Version{Wall: got.Wall, Counter: got.Counter, Node: got.Node}
	return encodes(fresh.String(), text, canonical)
}

func checkBadVersion(v *vector) error {
	got, err := wire.ParseVersion(v.text())
	return versionError(got, err)
}

func checkToken(v *vector) error {
	text := v.text()
	got, err := wire.ParseToken(text)
	if err != nil {
		return err
	}
	return same(got.String(), text)
}

func checkBadToken(v *vector) error {
	text := v.text()
	if _, err := wire.ParseVersion(text); err != nil {
		return fmt.Errorf("cannot even be received: %w", err)
	}
	got, err := wire.ParseToken(text)
	return versionError(got, err)
}

func checkResponseTopic(v *vector) error {
	topic, id := v.text(), v.text()
	if err := same(wire.ResponseTopic(id), topic); err != nil {
		return err
	}
	return wire.CheckResponseTopic(topic)
}

func checkForbidden(v *vector) error {
	topic := v.text()
	if !wire.IsForbiddenResponseTopic(topic) {
		return fmt.Errorf("is not forbidden")
	}
	return wantError(wire.CheckResponseTopic(topic), wire.ErrForbiddenResponseTopic)
}

func checkBadResponseTopic(v *vector) error {
	topic := v.text()
	if wire.IsForbiddenResponseTopic(topic) || wire.CheckResponseTopic(topic) == nil {
		return fmt.Errorf("want an error other than forbidden")
	}
	return nil
}

func checkNotifyTopic(v *vector, canonical bool) error {
	topic, wantID, wantKey := v.text(), v.text(), v.text()
	id, key, ok := wire.ParseNotifyTopic(topic)
	if !ok || id != wantID || key != wantKey {
		return fmt.Errorf("got %q, %q, %v", id, key, ok)
	}
	return encodes(wire.NotifyTopic(id, key), topic, canonical)
}

func checkNotifyFilter(v *vector) error {
	filter, id := v.text(), v.text()
	return same(wire.NotifyFilter(id), filter)
}

func checkNoNotifyTopic(v *vector) error {
	if id, key, ok := wire.ParseNotifyTopic(v.text()); ok || id != "" || key != "" {
		return fmt.Errorf("got %q, %q, %v", id, key, ok)
	}
	return nil
}

func checkBadClientID(v *vector) error {
	if wire.CheckClientID(v.text()) == nil {
		return fmt.Errorf("want an error")
	}
	return nil
}

func checkName(v *vector) error {
	text, name := v.text(), v.word()
	constants := map[string]string{
		"PropTimestamp":      wire.PropTimestamp,
		"PropFence":          wire.PropFence,
		"PropSource":         wire.PropSource,
		"PropProtocol":       wire.PropProtocol,
		"PropPartition":      wire.PropPartition,
		"PropHighPriority":   wire.PropHighPriority,
		"PropPersist":        wire.PropPersist,
		"PropStatus":         wire.PropStatus,
		"PropStatusMessage":  wire.PropStatusMessage,
		"PropMetricCategory": wire.PropMetricCategory,
		"ProtocolVersion":    wire.ProtocolVersion,
		"StatusOK":           wire.StatusOK,
		"ContentType":        wire.ContentType,
		"VerbGet":            wire.VerbGet,
		"VerbSet":            wire.VerbSet,
		"VerbDel":            wire.VerbDel,
		"VerbVDel":           wire.VerbVDel,
		"VerbKeyNotify":      wire.VerbKeyNotify,
		"VerbScan":           wire.VerbScan,
		"OptionNX":           wire.OptionNX,
		"OptionNEX":          wire.OptionNEX,
		"OptionPX":           wire.OptionPX,
		"OptionStop":         wire.OptionStop,
	}
	got, ok := constants[name]
	if !ok {
		return fmt.Errorf("no constant %q", name)
	}
	return same(got, text)
}
