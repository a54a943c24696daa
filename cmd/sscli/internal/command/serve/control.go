package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/sources"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/glob"
)

// A control is the control port (--control) of one store: tests in any language steer the emulator by HTTP, as Go tests
// do with package emulator. docs/testing-applications.md describes it.
type control struct {
	server *emulator.Server
	large  chan struct{} // holds a value while a snapshot or a load runs: each may take much memory
}

// The limits of the control port.
const (
	maxBody    = 8 << 10 // of a request, in bytes
	maxLoad    = 64 << 20
	maxForward = 10 * 365 * 24 * time.Hour
	maxAhead   = 10 * maxForward // of the store's clock; a Duration holds 292 years
	maxBusy    = time.Second     // how long a snapshot or a load waits for another one
)

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

func (c *control) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, controlHelp) })
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.state()) })
	mux.HandleFunc("POST /reset", handle(struct{ Disconnect bool }{}, func(b struct{ Disconnect bool }) (any, error) {
		err := c.server.Reset(b.Disconnect)
		return c.state(), err
	}))
	mux.HandleFunc("POST /restart", handle(struct{ Empty bool }{}, func(b struct{ Empty bool }) (any, error) {
		err := c.server.Restart(!b.Empty)
		return c.state(), err
	}))
	mux.HandleFunc("POST /disconnect", handle(struct{}{}, func(struct{}) (any, error) {
		c.server.DropAll()
		return c.state(), nil
	}))
	mux.HandleFunc("POST /expire", handle(expiry{}, c.expire))
	mux.HandleFunc("POST /fast-forward", handle(struct{ By string }{}, c.forward))
	mux.HandleFunc("GET /snapshot", c.oneByOne(c.snapshot))
	mux.HandleFunc("POST /load", c.oneByOne(c.load))
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.server.Faults()) })
	mux.HandleFunc("POST /faults", handle(emulator.Fault{Count: 1}, func(f emulator.Fault) (any, error) { return c.server.AddFault(f) }))
	mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, _ *http.Request) {
		c.server.RemoveFaults()
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// handle returns a handler that decodes the body into a copy of begin, passes it to do, and answers with the
// result of do.
func handle[T any](begin T, do func(T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := begin
		if !read(w, r, &body) {
			return
		}
		switch value, err := do(body); {
		case errors.Is(err, emulator.ErrClosed) || fault.IsA[*emulator.DataError](err):
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case err != nil:
			refuse(w, err)
		default:
			answer(w, value)
		}
	}
}

const controlHelp = `The control port of sscli serve, for tests. Bodies are JSON, with Content-Type: application/json.

POST   /reset         {}                 as at the start: keys, clock, faults, queues; clients stay connected, or
                      {"disconnect": true}
POST   /expire        {"by": "31s"}      keys expire as if the time had passed; the clock and versions stay
                      {"within": "31s"}: those that are due within expire now; {}: all. "key": "lease*": only these
POST   /fast-forward  {"by": "30s"}      the clock jumps ahead: keys expire, delayed requests are processed
GET    /state                            keys, clients, requests, and the time of the store's clock
POST   /faults        {"verb": "SET", "key": "lease*", "client": "a", "count": 1, and what happens, such as
                       "drop": "reply"}: see docs/testing-applications.md
GET    /faults                           all faults, and how often each of them happened
DELETE /faults                           removes them
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
func readBody(w http.ResponseWriter, r *http.Request, kind string, limit int64) (string, bool) {
	if got, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(got) != kind {
		http.Error(w, "expected Content-Type: "+kind, http.StatusUnsupportedMediaType)
		return "", false
	}
	var body strings.Builder
	body.Grow(int(max(0, min(r.ContentLength, limit)))) // without garbage
	if _, err := io.Copy(&body, http.MaxBytesReader(w, r.Body, limit)); err != nil {
		refuse(w, fmt.Errorf("body: %w", err))
		return "", false
	}
	return body.String(), true
}

// read parses the body of a request. An error names the field of the body.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	body, ok := readBody(w, r, "application/json", maxBody)
	if !ok {
		return false
	}
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s: expected %s, got a JSON %s", cmp.Or(strings.ToLower(kind.Field), "body"), jsonKinds()[kind.Type.Kind()], kind.Value)
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
func jsonKinds() map[reflect.Kind]string {
	return map[reflect.Kind]string{reflect.String: "a string", reflect.Int: "a whole number", reflect.Bool: "true or false", reflect.Struct: "an object"}
}

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

func (c *control) state() controlState {
	s := c.server.State()
	return controlState{c.server.Now().UTC(), s.Keys, s.Clients, s.Requests, s.Replies, s.Notifications, s.Registrations, s.Delayed}
}

func (c *control) forward(b struct{ By string }) (any, error) {
	d, err := parsePositive("by", b.By)
	if err == nil && time.Until(c.server.Now()) > maxAhead-d {
		err = fmt.Errorf("by: %.32q: the store's clock would be more than 100 years ahead", b.By)
	}
	if err != nil {
		return nil, err
	}
	c.server.FastForward(d)
	return c.state(), nil
}

// An expiry says which keys expire, or how much earlier.
type expiry struct{ By, Key, Within string }

func (c *control) expire(b expiry) (any, error) {
	pattern, ok := glob.Parse(b.Key)
	by, within := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	var err error
	switch {
	case !ok:
		err = fmt.Errorf("key: %.64q: not a pattern", b.Key)
	case b.By != "" && b.Within != "":
		err = errors.New("by, within: by lets keys expire earlier, and within chooses keys that expire now")
	case b.By != "":
		by, err = parsePositive("by", b.By)
	case b.Within != "":
		within, err = parsePositive("within", b.Within)
	}
	if err != nil {
		return nil, err
	}
	expired := c.server.AgeKeys(by, func(key string, left time.Duration) bool {
		return left <= within && (b.Key == "" || pattern.Match([]byte(key)))
	})
	return map[string]int{"expired": expired}, nil
}

// oneByOne returns a handler that waits for another snapshot or load, but not for one whose client is slow.
func (c *control) oneByOne(do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case c.large <- struct{}{}:
			defer func() { <-c.large }()
			do(w, r)
		case <-time.After(maxBusy):
			w.Header().Set("Retry-After", "1")
			http.Error(w, "busy with another snapshot or load: try again", http.StatusServiceUnavailable)
		}
	}
}

// snapshot writes the keys as sscli export does.
func (c *control) snapshot(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", linesType)
	out, err := format.New(w, format.Options{Output: "json"})
	for key, e := range c.server.All() {
		if err != nil {
			return
		}
		err = out.Queue(format.Get{Key: key, Found: true, Value: e.Value, Version: e.Version, Many: true})
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
	seeds, err := seedsOf(r.Context(), []string{"-"}, sources.Options{Stdin: func(context.Context) (string, error) { return body, nil }, StdinName: "body"})
	if err == nil {
		err = c.server.Load(seeds)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, c.state())
}
