package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/glob"
)

// A control is the control port (--control) of one store: tests in any language steer the emulator by HTTP, as Go tests
// do with package emulator. docs/testing-applications.md describes it.
type control struct {
	server *emulator.Server

	mu     sync.Mutex
	faults map[int]faultBody // as they were sent, by ID
}

func newControl(server *emulator.Server) *control {
	return &control{server: server, faults: make(map[int]faultBody)}
}

// The limits of the control port.
const (
	maxBody    = 8 << 10 // of a request, in bytes
	maxLoad    = 64 << 20
	maxForward = 10 * 365 * 24 * time.Hour
	maxAhead   = 10 * maxForward // of the store's clock; a Duration holds 292 years
)

// A faultBody is a fault as JSON: see emulator.Fault.
type faultBody struct {
	Verb   string `json:"verb,omitempty"`
	Key    string `json:"key,omitempty"`
	Client string `json:"client,omitempty"`
	Count  int    `json:"count"` // how often; 0 = until the fault is deleted

	Drop    string `json:"drop,omitempty"`    // "request", "reply" or "notification"
	Repeat  string `json:"repeat,omitempty"`  // "reply" or "notification"
	Reorder string `json:"reorder,omitempty"` // "notification"
	Cut     string `json:"cut,omitempty"`     // "before" or "after" the store processes the request

	CutBytes          int    `json:"cut_bytes,omitempty"`
	Delay             string `json:"delay,omitempty"`
	DelayReply        string `json:"delay_reply,omitempty"`
	DelayNotification string `json:"delay_notification,omitempty"`
	Stall             string `json:"stall,omitempty"`

	Error      string `json:"error,omitempty"`
	Puback     string `json:"puback,omitempty"` // reason codes, such as 0x97
	Disconnect string `json:"disconnect,omitempty"`
	Connack    string `json:"connack,omitempty"`
}

// A listedFault is a fault as GET /faults lists it.
type listedFault struct {
	ID int `json:"id"`
	faultBody
	Fired   int      `json:"fired"` // how often it happened
	Over    bool     `json:"over"`  // it will not happen again
	Reaches []string `json:"reaches"`
}

// parse returns the fault. The error names the field that is invalid.
func (b *faultBody) parse() (f emulator.Fault, err error) {
	f = emulator.Fault{Verb: b.Verb, Key: b.Key, Client: b.Client, Count: b.Count}
	if f.Count == 0 {
		f.Count = -1
	}
	r, n := &f.Request, &f.Notification
	f.Request.Error = b.Error
	if r.CutBytes = b.CutBytes; b.Count < 0 || b.CutBytes < 0 {
		return f, fmt.Errorf("%s: must not be negative", map[bool]string{true: "count", false: "cut_bytes"}[b.Count < 0])
	}
	for _, word := range []struct {
		name, text string
		sets       map[string]*bool
		expected   string
	}{
		{"drop", b.Drop, map[string]*bool{"request": &r.Drop, "reply": &r.DropReply, "notification": &n.Drop}, "request, reply or notification"},
		{"repeat", b.Repeat, map[string]*bool{"reply": &r.Duplicate, "notification": &n.Duplicate}, "reply or notification"},
		{"reorder", b.Reorder, map[string]*bool{"notification": &n.Reorder}, "notification"},
		{"cut", b.Cut, map[string]*bool{"before": &r.Cut, "after": &r.CutAfter}, "before or after"},
	} {
		at := word.sets[word.text]
		if at != nil {
			*at = true
		} else if word.text != "" {
			return f, fmt.Errorf("%s: %.32q: expected %s", word.name, word.text, word.expected)
		}
	}
	for _, d := range []struct {
		name, text string
		into       *time.Duration
	}{{"delay", b.Delay, &r.Delay}, {"delay_reply", b.DelayReply, &r.DelayReply}, {"delay_notification", b.DelayNotification, &n.Delay}, {"stall", b.Stall, &r.Stall}} {
		if d.text == "" {
			continue
		}
		if *d.into, err = parsePositive(d.name, d.text); err != nil {
			return f, err
		}
	}
	for _, c := range []struct {
		name, text string
		into       *byte
	}{{"puback", b.Puback, &r.Refuse}, {"disconnect", b.Disconnect, &r.Disconnect}, {"connack", b.Connack, &f.Connack}} {
		if c.text == "" {
			continue
		}
		code, err := strconv.ParseUint(c.text, 0, 8)
		if err != nil || code == 0 {
			return f, fmt.Errorf("%s: %.32q: expected a reason code such as \"0x97\"", c.name, c.text)
		}
		*c.into = byte(code)
	}
	return f, nil
}

// parsePositive parses the duration in a field of a body.
func parsePositive(name, text string) (time.Duration, error) {
	d, err := config.ParseDuration(text)
	if err == nil && (d <= 0 || d > maxForward) {
		err = fmt.Errorf("%.32q: expected more than 0, and at most 10 years", text)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// routes returns the handler of one store.
func (c *control) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, controlHelp) })
	mux.HandleFunc("GET /state", c.state)
	mux.HandleFunc("POST /reset", c.reset)
	mux.HandleFunc("POST /expire", c.expire)
	mux.HandleFunc("POST /fast-forward", c.forward)
	mux.HandleFunc("POST /restart", c.restart)
	mux.HandleFunc("POST /disconnect", c.disconnect)
	mux.HandleFunc("GET /snapshot", c.snapshot)
	mux.HandleFunc("POST /load", c.load)
	mux.HandleFunc("GET /faults", c.list)
	mux.HandleFunc("POST /faults", c.add)
	mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, _ *http.Request) {
		c.server.RemoveFaults()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /faults/{id}", func(w http.ResponseWriter, r *http.Request) {
		if id, err := strconv.Atoi(r.PathValue("id")); err != nil || !c.server.RemoveFault(id) {
			http.Error(w, "no such fault", http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

const controlHelp = `The control port of sscli serve, for tests. Bodies are JSON, with Content-Type: application/json.

POST   /reset         {}                 as at the start: keys, clock, faults, queues; clients stay connected, or
                      {"disconnect": true}
POST   /expire        {"by": "31s"}      keys expire as if the time had passed; the clock and versions stay
                      {"key": "lease*"}, {"within": "31s"}: these keys, or those that are due within, expire now
POST   /fast-forward  {"by": "30s"}      the clock jumps ahead: keys expire, delayed requests are processed
GET    /state                            keys, clients, requests, and the time of the store's clock
POST   /faults        {"verb": "SET", "key": "lease*", "client": "a", "count": 1, and what happens, such as
                       "drop": "reply"}: see docs/testing-applications.md
GET    /faults                           all faults, and how often each of them happened
DELETE /faults, /faults/ID               removes them
POST   /disconnect    {}                 closes the connections of all clients
POST   /restart       {"empty": true}    as a restart of the broker, with an empty store
GET    /snapshot                         the keys and values, as sscli export prints them
POST   /load                             sets the keys of such lines, with Content-Type: application/x-ndjson
POST   /stores        {"name": "a"}      another store with ports, clock and faults of its own, steered by /stores/a/...
GET    /stores                           lists them
DELETE /stores/NAME                      ends one
`

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the client went away
}

func refuse(w http.ResponseWriter, err error) { http.Error(w, err.Error(), http.StatusBadRequest) }

// readBody returns the body of a request of a type, of at most limit bytes.
func readBody(w http.ResponseWriter, r *http.Request, kind string, limit int64) ([]byte, bool) {
	if got, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(got) != kind {
		http.Error(w, "expected Content-Type: "+kind, http.StatusUnsupportedMediaType)
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		refuse(w, fmt.Errorf("body: %w", err))
		return nil, false
	}
	return body, true
}

// read parses the body of a request. An error names the field of the body.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	body, ok := readBody(w, r, "application/json", maxBody)
	if !ok {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s: expected %s, got a JSON %s", cmp.Or(strings.ToLower(kind.Field), "body"), jsonKinds[kind.Type.Kind()], kind.Value)
	} else if err == io.EOF {
		err = errors.New("body: expected a JSON object, such as {}")
	} else if err != nil {
		err = fmt.Errorf("body: %s", strings.TrimPrefix(err.Error(), "json: "))
	} else if _, after := d.Token(); after != io.EOF {
		err = errors.New("body: more than one value")
	}
	if err != nil {
		refuse(w, err)
	}
	return err == nil
}

// jsonKinds names what a field of a body must be.
var jsonKinds = map[reflect.Kind]string{reflect.String: "a string", reflect.Int: "a whole number", reflect.Bool: "true or false", reflect.Struct: "an object"}

// A controlState is the answer to GET /state.
type controlState struct {
	Now           time.Time `json:"now"` // the store's clock
	Keys          int       `json:"keys"`
	Clients       int       `json:"clients"`
	Requests      int       `json:"requests"`
	Replies       int       `json:"replies"`
	Notifications int       `json:"notifications"`
	Registrations int       `json:"registrations"` // of KEYNOTIFY
	Delayed       int       `json:"delayed"`       // requests and replies that a fault delays
}

func (c *control) state(w http.ResponseWriter, _ *http.Request) {
	s := c.server.State()
	answer(w, controlState{c.server.Now().UTC(), s.Keys, s.Clients, s.Requests, s.Replies, s.Notifications, s.Registrations, s.Delayed})
}

func (c *control) forward(w http.ResponseWriter, r *http.Request) {
	var body struct{ By string }
	if !read(w, r, &body) {
		return
	}
	d, err := parsePositive("by", body.By)
	if err == nil && time.Until(c.server.Now()) > maxAhead-d {
		err = fmt.Errorf("by: %.32q: the store's clock would be more than 100 years ahead", body.By)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	c.server.FastForward(d)
	c.state(w, r)
}

func (c *control) restart(w http.ResponseWriter, r *http.Request) {
	var body struct{ Empty bool }
	if !read(w, r, &body) {
		return
	}
	if err := c.server.Restart(!body.Empty); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	c.state(w, r)
}

func (c *control) disconnect(w http.ResponseWriter, r *http.Request) {
	if !read(w, r, &struct{}{}) {
		return
	}
	c.server.DropAll()
	c.state(w, r)
}

func (c *control) reset(w http.ResponseWriter, r *http.Request) {
	var body struct{ Disconnect bool }
	if !read(w, r, &body) {
		return
	}
	if err := c.server.Reset(body.Disconnect); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	c.state(w, r)
}

func (c *control) expire(w http.ResponseWriter, r *http.Request) {
	var body struct{ By, Key, Within string }
	if !read(w, r, &body) {
		return
	}
	pattern, ok := glob.Parse(cmp.Or(body.Key, "*"))
	within, by := time.Duration(math.MaxInt64), time.Duration(0)
	var err error
	switch {
	case !ok:
		err = fmt.Errorf("key: %.64q: not a pattern", body.Key)
	case body.By != "" && (body.Within != "" || body.Key != ""):
		err = errors.New("by: lets all keys expire earlier; key and within choose keys that expire now")
	case body.By != "":
		by, err = parsePositive("by", body.By)
	case body.Within != "":
		within, err = parsePositive("within", body.Within)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	var expired int
	if by > 0 {
		expired = c.server.AgeKeys(by)
	} else {
		expired = c.server.ExpireKeys(func(key string, left time.Duration) bool { return left <= within && pattern.Match([]byte(key)) })
	}
	answer(w, struct {
		Expired int `json:"expired"`
	}{expired})
}

// snapshot writes the keys as sscli export does.
func (c *control) snapshot(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", linesType)
	out, err := format.New(w, format.Options{Output: "json"})
	for _, key := range c.server.Keys() {
		if e, found := c.server.Get(key); found && err == nil {
			err = out.Queue(format.Get{Key: key, Found: true, Value: e.Value, Version: e.Version, Many: true})
		}
	}
	if err == nil {
		_ = out.Flush() // an error means that the client went away
	}
}

const linesType = "application/x-ndjson"

// load sets the keys of lines in the form of sscli export, or of another one that sscli apply reads from standard input.
func (c *control) load(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r, linesType, maxLoad)
	if !ok {
		return
	}
	seeds, err := seedsOf(r.Context(), []string{"-"}, func(context.Context) (string, error) { return string(body), nil })
	if err == nil {
		err = c.server.Load(seeds)
	}
	if err != nil {
		refuse(w, fmt.Errorf("body: %s", strings.TrimPrefix(err.Error(), `"standard input": `)))
		return
	}
	c.state(w, r)
}

// listed returns the faults of the store in the order in which they were added. c.mu is held.
func (c *control) listed() []listedFault {
	all, kept := []listedFault{}, make(map[int]faultBody)
	for _, f := range c.server.Faults() {
		kept[f.ID] = c.faults[f.ID]
		all = append(all, listedFault{f.ID, c.faults[f.ID], f.Fired, f.Over(), f.Reaches})
	}
	c.faults = kept
	return all
}

func (c *control) list(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	all := c.listed()
	c.mu.Unlock() // before the answer, which waits for the client
	answer(w, all)
}

func (c *control) add(w http.ResponseWriter, r *http.Request) {
	body := faultBody{Count: 1}
	if !read(w, r, &body) {
		return
	}
	f, err := body.parse()
	if err != nil {
		refuse(w, err)
		return
	}
	body.Verb = strings.ToUpper(body.Verb)
	var added listedFault
	c.mu.Lock()
	id, err := c.server.AddFault(f)
	if err == nil {
		c.faults[id] = body
		for _, added = range c.listed() { // the last one
		}
	}
	c.mu.Unlock()
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, added)
}
