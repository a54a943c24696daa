package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sscli/sscli/cmd/sscli/internal/accounts"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/glob"
	"github.com/sscli/sscli/internal/httpport"
)

// A control is the control port (--control): tests in any language steer the emulator by HTTP, as Go tests do with
// package emulator. docs/testing-applications.md describes it.
type control struct {
	server *emulator.Server

	mu     sync.Mutex
	faults []*injected // in the order in which they were added
	added  int
}

// The limits of the control port.
const (
	maxBody    = 8 << 10 // of a request, in bytes
	maxPattern = 1024    // of a fault, in bytes, as in SCAN: each request of a client is matched
	maxFaults  = 1000
	maxForward = 10 * 365 * 24 * time.Hour
	maxAhead   = 10 * maxForward // of the store's clock; a Duration holds 292 years
)

// An injected is a fault that is to happen to requests, or to notifications.
type injected struct {
	ID int `json:"id"`

	// Which requests; empty = all. Key is a pattern, as in SCAN.
	Verb   string `json:"verb,omitempty"`
	Key    string `json:"key,omitempty"`
	Client string `json:"client,omitempty"`
	Count  int    `json:"count"` // how many; 0 = all, until the fault is deleted

	Drop       string `json:"drop,omitempty"` // "request", "reply" or "notification"
	Cut        string `json:"cut,omitempty"`  // "before" or "after" the store processes the request
	Delay      string `json:"delay,omitempty"`
	DelayReply string `json:"delay_reply,omitempty"`

	action  emulator.Action
	pattern *glob.Pattern // of Key
}

// parse checks a fault, and sets action and pattern.
func (f *injected) parse() (err error) {
	switch f.Drop {
	case "":
	case "request":
		f.action.Drop = true
	case "reply":
		f.action.DropReply = true
	case "notification":
		if f.Verb != "" || f.Cut != "" || f.Delay != "" || f.DelayReply != "" {
			return errors.New(`drop: "notification" goes with key, client and count`)
		}
	default:
		return fmt.Errorf("drop: %.32q: expected request, reply or notification", f.Drop)
	}
	switch f.Cut {
	case "":
	case "before":
		f.action.Cut = true
	case "after":
		f.action.CutAfter = true
	default:
		return fmt.Errorf("cut: %.32q: expected before or after", f.Cut)
	}
	for _, d := range []struct {
		name, text string
		into       *time.Duration
	}{{"delay", f.Delay, &f.action.Delay}, {"delay_reply", f.DelayReply, &f.action.DelayReply}} {
		if d.text == "" {
			continue
		}
		if *d.into, err = config.ParseDuration(d.text); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if *d.into <= 0 || *d.into > maxForward {
			return fmt.Errorf("%s: %.32s: expected more than 0, and at most 10 years", d.name, d.text)
		}
	}
	f.Verb = strings.ToUpper(f.Verb)
	switch {
	case len(f.Key) > maxPattern:
		return fmt.Errorf("key: longer than %d bytes", maxPattern)
	case f.Count < 0:
		return errors.New("count: must not be negative")
	case f.Drop == "" && f.Cut == "" && f.Delay == "" && f.DelayReply == "":
		return errors.New("nothing to do: expected drop, cut, delay or delay_reply")
	}
	var ok bool
	if f.pattern, ok = glob.Parse(f.Key); !ok {
		return fmt.Errorf("key: %q: not a pattern", f.Key)
	}
	return nil
}

// take returns the action of the first fault that fits.
func (c *control) take(notification bool, verb, key, client string) (emulator.Action, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, f := range c.faults {
		if notification != (f.Drop == "notification") || f.Verb != "" && f.Verb != verb || f.Client != "" && f.Client != client ||
			f.Key != "" && !f.pattern.Match([]byte(key)) {
			continue
		}
		if f.Count == 1 {
			c.faults = slices.Delete(c.faults, i, i+1)
		} else if f.Count > 1 {
			f.Count--
		}
		return f.action, true
	}
	return emulator.Action{}, false
}

// startControl serves the control port on an address, unless it is empty, until end is called. anybody is set
// if clients of other machines need no login.
func startControl(server *emulator.Server, address string, anybody bool) (url string, end func() error, err error) {
	if address == "" {
		return "", func() error { return nil }, nil
	}
	c := &control{server: server}
	handler := httpport.NoPages(c.handler())
	loopback, err := config.IsLoopback(address)
	switch {
	case err != nil:
		return "", nil, fault.Usagef("--control: %w", err)
	case loopback:
		handler = httpport.SameHost(handler)
	case !anybody:
		return "", nil, accounts.Exposed("--control", address, "anybody who reaches that address could steer the store",
			"`--control 127.0.0.1:1884`, or `--no-login` to let anybody in")
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fault.Usagef("--control: %w", err)
	}
	url = admission.URL("http", ln.Addr())
	web, ln := httpport.Server(ln, handler)
	server.Intercept(func(r emulator.Request) emulator.Action {
		action, _ := c.take(false, r.Verb(), r.Key(), r.ClientID)
		return action
	})
	server.InterceptNotifications(func(n emulator.Notification) emulator.NotificationAction {
		_, drop := c.take(true, "", n.Key, n.ClientID)
		return emulator.NotificationAction{Drop: drop}
	})
	served := make(chan error, 1)
	go func() { served <- web.Serve(ln) }()
	return url, func() error {
		_ = web.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, nil
}

func (c *control) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, controlHelp) })
	mux.HandleFunc("GET /state", c.state)
	mux.HandleFunc("POST /fast-forward", c.forward)
	mux.HandleFunc("POST /restart", c.restart)
	mux.HandleFunc("POST /disconnect", c.disconnect)
	mux.HandleFunc("GET /faults", c.list)
	mux.HandleFunc("POST /faults", c.add)
	mux.HandleFunc("DELETE /faults", c.clear)
	return mux
}

const controlHelp = `The control port of sscli serve, for tests. Bodies are JSON, with Content-Type: application/json.

GET    /state                            keys, clients, requests, and the time of the store's clock
POST   /fast-forward  {"by": "30s"}      the clock jumps ahead: keys expire, delayed requests are processed
POST   /faults        {"verb": "SET", "key": "lease*", "client": "a", "count": 1, and one or more of
                       "drop": "request", "reply" or "notification", "cut": "before" or "after",
                       "delay": "5s", "delay_reply": "5s"}
GET    /faults                           the faults that are still to happen
DELETE /faults                           removes them
POST   /disconnect    {}                 closes the connections of all clients
POST   /restart       {"empty": true}    as a restart of the broker, with an empty store
`

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the client went away
}

func refuse(w http.ResponseWriter, err error) { http.Error(w, err.Error(), http.StatusBadRequest) }

// read parses the body of a request.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/json" {
		http.Error(w, "expected Content-Type: application/json", http.StatusUnsupportedMediaType)
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		refuse(w, fmt.Errorf("body: %w", err))
		return false
	}
	if _, err := d.Token(); err != io.EOF {
		refuse(w, errors.New("body: more than one value"))
		return false
	}
	return true
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

func (c *control) state(w http.ResponseWriter, _ *http.Request) {
	s := c.server.State()
	answer(w, controlState{c.server.Now().UTC(), s.Keys, s.Clients, s.Requests, s.Replies, s.Notifications, s.Registrations, s.Delayed})
}

func (c *control) forward(w http.ResponseWriter, r *http.Request) {
	var body struct{ By string }
	if !read(w, r, &body) {
		return
	}
	d, err := config.ParseDuration(body.By)
	if err == nil && (d <= 0 || d > maxForward) {
		err = fmt.Errorf("%.32q: expected more than 0, and at most 10 years", body.By)
	}
	if err == nil && time.Until(c.server.Now()) > maxAhead-d {
		err = fmt.Errorf("%.32q: the store's clock would be more than 100 years ahead", body.By)
	}
	if err != nil {
		refuse(w, fmt.Errorf("by: %w", err))
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

func (c *control) list(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	all := make([]injected, len(c.faults))
	for i, f := range c.faults {
		all[i] = *f
	}
	c.mu.Unlock()
	answer(w, all)
}

func (c *control) add(w http.ResponseWriter, r *http.Request) {
	f := &injected{Count: 1}
	if !read(w, r, f) {
		return
	}
	if err := f.parse(); err != nil {
		refuse(w, err)
		return
	}
	c.mu.Lock()
	full := len(c.faults) >= maxFaults
	if !full {
		c.added++
		f.ID = c.added
		c.faults = append(c.faults, f)
	}
	added := *f
	c.mu.Unlock() // before the answer, which waits for the client
	if full {
		refuse(w, fmt.Errorf("more than %d faults: delete them first", maxFaults))
		return
	}
	answer(w, added)
}

func (c *control) clear(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	c.faults = nil
	c.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}
