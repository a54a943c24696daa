package serve

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"sync"

	"github.com/sscli/sscli/cmd/sscli/internal/accounts"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/httpport"
)

// A stores is the control port with all stores that it controls: the store of serve, and the stores that tests added.
type stores struct {
	first  *control
	open   openStore
	web    *http.Server // nil = there is no port
	served chan error

	mu   sync.Mutex
	more map[string]*control // by name
}

// An openStore starts another store on these addresses; an empty one is chosen.
type openStore func(listen, redis string) (*emulator.Server, error)

const maxStores = 100 // in addition to the first

// startControl serves the control port on an address, unless it is empty, until Close is called. anybody is set if
// clients of other machines need no login.
func startControl(server *emulator.Server, address string, anybody bool, open openStore) (url string, s *stores, err error) {
	s = &stores{open: open, more: make(map[string]*control)}
	s.first = &control{server, make(chan struct{}, 1)}
	if address == "" {
		return "", s, nil
	}
	handler := httpport.NoPages(s.routes())
	loopback, err := config.IsLoopback(address)
	switch {
	case err != nil:
		return "", nil, fault.Usagef("--control: %w", err)
	case loopback:
		handler = httpport.SameHost(handler)
	case !anybody:
		return "", nil, accounts.Exposed("--control", address, "anybody who reaches that address could steer the store",
			"`--control 127.0.0.1:1884`, or `--control-insecure` to let anybody steer it")
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fault.Usagef("--control: %w", err)
	}
	url = admission.URL("http", ln.Addr())
	s.web, ln = httpport.Server(ln, handler)
	s.served = make(chan error, 1)
	go func() { s.served <- s.web.Serve(ln) }()
	return url, s, nil
}

// Close closes the port and the stores that tests have added.
func (s *stores) Close() error {
	if s.web == nil {
		return nil
	}
	err := s.web.Close()
	if ended := <-s.served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.more {
		err = errors.Join(err, c.server.Close())
	}
	return err
}

// stored returns the memory of the keys and values of all stores, in bytes.
func (s *stores) stored() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.first.server.State().Stored
	for _, c := range s.more {
		n += c.server.State().Stored
	}
	return n
}

func (s *stores) routes() http.Handler {
	mux := s.first.routes()
	mux.HandleFunc("POST /stores", func(w http.ResponseWriter, r *http.Request) {
		handle(newStore{}, func(b newStore) (any, error) { return s.add(b, r.Host) })(w, r)
	})
	mux.HandleFunc("GET /stores", s.list)
	mux.HandleFunc("DELETE /stores/{name}", s.remove)
	mux.HandleFunc("/stores/{name}/", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		s.mu.Lock()
		c := s.more[name]
		s.mu.Unlock()
		if c == nil {
			http.Error(w, fmt.Sprintf("no store is named %.64q", name), http.StatusNotFound)
			return
		}
		http.StripPrefix("/stores/"+name, c.routes()).ServeHTTP(w, r)
	})
	return mux
}

// A listedStore is a store as GET /stores lists it.
type listedStore struct {
	Name       string `json:"name"`
	URL        string `json:"url"`
	RedisURL   string `json:"redis_url,omitempty"`
	ControlURL string `json:"control_url"`
}

func listing(name string, server *emulator.Server, host string) listedStore {
	return listedStore{name, server.URL(), server.RedisURL(), "http://" + host + "/stores/" + name}
}

// A newStore is the body of POST /stores.
type newStore struct{ Name, Listen, Redis string }

func storeName() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) }

func (s *stores) add(b newStore, host string) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !storeName().MatchString(b.Name):
		return nil, fmt.Errorf("name: %.70q: expected up to 64 letters, digits, _ and -", b.Name)
	case s.more[b.Name] != nil:
		return nil, fmt.Errorf("name: a store is named %q", b.Name)
	case len(s.more) >= maxStores:
		return nil, fmt.Errorf("there are %d stores: delete some first", maxStores)
	}
	server, err := s.open(b.Listen, b.Redis)
	if err != nil {
		return nil, err
	}
	s.more[b.Name] = &control{server, s.first.large}
	return listing(b.Name, server, host), nil
}

func (s *stores) list(w http.ResponseWriter, r *http.Request) {
	all := []listedStore{}
	s.mu.Lock()
	for name, c := range s.more {
		all = append(all, listing(name, c.server, r.Host))
	}
	s.mu.Unlock()
	answer(w, all)
}

func (s *stores) remove(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	c := s.more[r.PathValue("name")]
	delete(s.more, r.PathValue("name"))
	s.mu.Unlock()
	if c == nil {
		http.Error(w, "no such store", http.StatusNotFound)
		return
	}
	if err := c.server.Close(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
