package check

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/accounts"
	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/format"
	"github.com/sscli/sscli/internal/admission"
	"github.com/sscli/sscli/internal/httpport"
	"github.com/sscli/sscli/internal/wait"
)

// listenFlags are the flags of the Prometheus target.
type listenFlags struct {
	listen   config.Text
	users    config.File
	port     accounts.Port
	insecure bool
}

func (f *listenFlags) bind(fs *pflag.FlagSet) {
	fs.Var(&f.listen, "listen", "stay connected, and serve the checks to Prometheus on `HOST:PORT`, at /metrics")
	fs.Var(&f.port.Cert, "tls-cert", "with --listen: PEM `FILE` with the server's certificate and its intermediate certificates")
	fs.Var(&f.port.Key, "tls-key", "with --listen: PEM `FILE` with the key of --tls-cert")
	fs.Var(&f.users, "users", "with --listen: `FILE` of the users who may read: lines of NAME:PASSWORD, the password plain or a bcrypt hash")
	fs.BoolVar(&f.insecure, "no-login", false, "with --listen: let anybody read on an address that is not loopback")
}

// open listens. The handler may be used from the address, and by the users, that the flags allow.
func (f listenFlags) open(handler http.Handler, warn func(string)) (ln net.Listener, url string, server *http.Server, err error) {
	loopback, err := config.IsLoopback(string(f.listen))
	if err != nil {
		return nil, "", nil, fault.Usagef("--listen: %w", err)
	}
	if !loopback && f.users == "" && !f.insecure {
		return nil, "", nil, accounts.Exposed("--listen", string(f.listen), "anybody who reaches that address could read the names of keys and locks",
			"`--users FILE`, or `--no-login` to let anybody read")
	}
	switch {
	case f.users != "":
		users, err := accounts.ReadUsers(string(f.users))
		if err != nil {
			return nil, "", nil, &fault.UsageError{Err: fmt.Errorf("--users: %w", err)}
		}
		handler = httpport.BasicAuth(handler, users.Check)
	case loopback:
		handler = httpport.SameHost(handler)
	}
	tlsConfig, err := f.port.TLS(warn)
	if err != nil {
		return nil, "", nil, err
	}
	if ln, err = net.Listen("tcp", string(f.listen)); err != nil {
		return nil, "", nil, &fault.UsageError{Err: fmt.Errorf("--listen %s: %w", f.listen, err), Hint: suggest.Try("another `--listen`, such as 127.0.0.1:0 for any free port")}
	}
	url = admission.URL("http", ln.Addr()) + "/metrics"
	server, ln = httpport.Server(ln, handler)
	if tlsConfig != nil {
		url = admission.URL("https", ln.Addr()) + "/metrics"
		ln = tls.NewListener(ln, tlsConfig)
	}
	return ln, url, server, nil
}

// A monitor watches the keys of all views, and serves what it knows.
type monitor struct {
	apps    []*app.App // of the views
	noWrite bool
	state   string                              // the file of --state; "" = none
	build   string                              // the version of sscli
	load    func() ([]*view, []*app.App, error) // reads the file of the checks again; nil = there is none
	pause   time.Duration                       // permanentPause, except in tests
	refuse  time.Duration                       // refusedPause, except in tests
	log     func(format string, args ...any)    // with --verbose
	warn    func(text string)
	now     func() time.Time

	scrape sync.Mutex // one scrape at a time
	views  []*view    // changed with scrape held

	hangup <-chan struct{} // has a value after SIGHUP; nil = never
}

func (m *monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != "/metrics":
		http.Error(w, "the metrics are at /metrics", http.StatusNotFound)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "expected GET", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	m.scrape.Lock()
	views := m.views
	if name := r.URL.Query().Get("context"); name != "" {
		views = slices.DeleteFunc(slices.Clone(views), func(v *view) bool { return v.context != name })
	}
	text := ""
	if len(views) > 0 {
		text = expose(views, m.build, true, m.now())
	}
	m.scrape.Unlock()
	w.Header().Set("Vary", "Accept-Encoding")
	switch {
	case text == "":
		http.Error(w, "no check has this context", http.StatusNotFound)
	case r.Method == http.MethodHead:
	case acceptsGzip(r):
		w.Header().Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level exists
		_, _ = z.Write([]byte(text))                   // the client went away
		_ = z.Close()
	default:
		_, _ = w.Write([]byte(text))
	}
}

func acceptsGzip(r *http.Request) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, quality, _ := strings.Cut(one, ";")
		if q := strings.TrimPrefix(strings.TrimSpace(quality), "q="); strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return strings.Trim(q, "0.") != "" || q == ""
		}
	}
	return false
}

// expose returns all views in the text format of Prometheus. build is the version of sscli.
func expose(views []*view, build string, watched bool, now time.Time) string {
	e := newExposition()
	e.add("sscli_build_info", 1, append([]label{{"version", build}}, views[0].labels...)...)
	for _, v := range views {
		v.expose(e, watched, now)
	}
	return e.String()
}

func (m *monitor) run(ctx context.Context, a *app.App, f listenFlags) error {
	a.LogsResults = true // the server goes on when nobody reads its output
	if err := a.NeverWait(); err != nil {
		return err
	}
	accounts.WarnExposed(a, "--users", string(f.users))
	accounts.WarnExposed(a, "--tls-key", string(f.port.Key))
	ln, url, server, err := f.open(m, a.Warn)
	if err != nil {
		return err
	}
	defer ln.Close()
	var running sync.WaitGroup
	ctx, stop := context.WithCancelCause(ctx)
	failed := func(err error) {
		if err != nil && ctx.Err() == nil {
			stop(err)
		}
	}
	if m.load != nil {
		m.hangup = accounts.Hangups(a)
	}
	m.remember()
	running.Go(func() { m.followAll(ctx, failed) })
	running.Go(func() {
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	})
	err = a.Emit(format.Serving{Op: "check", URL: url, Paste: []string{"curl -s " + url}})
	if err == nil {
		<-ctx.Done()
		err = fault.ServerEnded(context.Cause(ctx))
	}
	stop(nil)
	_ = server.Close() // closes the listener
	running.Wait()
	return err
}

// followAll keeps all views current until ctx ends, and replaces them after a SIGHUP.
func (m *monitor) followAll(ctx context.Context, failed func(error)) {
	for first := true; ctx.Err() == nil; first = false {
		var following sync.WaitGroup
		now, end := context.WithCancel(ctx)
		for i, v := range m.views {
			following.Go(func() { failed(m.follow(now, m.apps[i], v, first)) })
		}
		following.Go(func() {
			for m.state != "" && wait.For(now, keepInterval) {
				m.keep(now)
			}
		})
		views, apps := m.reloaded(ctx)
		end()
		following.Wait()
		m.keep(ctx)
		if views != nil {
			m.scrape.Lock()
			for _, v := range views {
				v.adopt(m.views)
			}
			m.views, m.apps = views, apps
			m.scrape.Unlock()
			m.remember()
		}
	}
}

const (
	// The store answers within probeTime, or it counts as down. With these, a store that stops answering
	// is down after at most 1.75 s.
	probeTime     = time.Second
	probeInterval = 750 * time.Millisecond

	clockInterval  = time.Minute      // between measurements of the clock
	countInterval  = 30 * time.Second // between counts of the keys that match
	keepInterval   = 15 * time.Second // between writes of the file of --state
	keepTime       = 2 * time.Second  // to wait for others that use it
	refusedPause   = time.Minute      // until a key that could not be watched is tried again
	permanentPause = 30 * time.Second // after a refused login, or a file that cannot be read: the file may be replaced
	auditInterval  = 5 * time.Minute
)

// follow keeps a view current until ctx ends. It returns an error of the settings, unless they were right at first:
// then a file that they name may be back soon.
func (m *monitor) follow(ctx context.Context, a *app.App, v *view, first bool) error {
	for ; ctx.Err() == nil; first = false {
		err := a.WithBroker(func(o client.Options) error { return m.connected(ctx, a, v, o) })
		if ctx.Err() != nil {
			return nil
		}
		if err == nil || first && !client.IsPermanent(err) {
			return err
		}
		v.fail(a, err)
		m.log("%s: %v; trying again in %v", v.context, err, m.pause)
		wait.For(ctx, m.pause)
	}
	return nil
}

// connected follows a broker over a session until ctx ends or an error is permanent.
func (m *monitor) connected(ctx context.Context, a *app.App, v *view, o client.Options) error {
	v.watchCertificates(&o)
	s, err := client.New(o)
	if err != nil {
		return err
	}
	defer s.Close()
	var looks *looking
	defer func() { looks.end() }()
	up := true
	for ctx.Err() == nil {
		began := time.Now()
		answered := v.probe(ctx, a, s, probeTime)
		if answered != up && ctx.Err() == nil {
			up = answered
			v.mu.Lock()
			why := v.broker.err
			v.mu.Unlock()
			if up {
				m.log("%s: the store answers again", v.context)
			} else {
				m.log("%s: %v", v.context, why)
			}
		}
		if err := s.Err(); !answered && client.IsPermanent(err) {
			return err
		}
		if looks != nil && (!answered || looks.Err() != nil) && ctx.Err() == nil {
			looks.end()
			looks = nil
			v.gap()
		}
		pause := ctx
		if answered {
			if looks == nil {
				looks = m.look(ctx, a, v, s, o)
			}
			pause = looks
		}
		wait.For(pause, probeInterval-time.Since(began))
	}
	return nil
}

// A looking looks at everything while the store answers. Its context ends when the watch breaks.
type looking struct {
	context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func (l *looking) end() {
	if l != nil {
		l.cancel()
		l.running.Wait()
	}
}

// look begins to look at everything that the checks of a view need.
func (m *monitor) look(ctx context.Context, a *app.App, v *view, s *client.Session, o client.Options) *looking {
	l := &looking{}
	l.Context, l.cancel = context.WithCancel(ctx)
	l.running.Go(func() { m.watch(l, v, s, l.cancel) })
	l.running.Go(func() {
		for ok := true; ok; ok = wait.For(l, clockInterval) {
			v.readToken(o)
			v.measureClock(l, a, s, m.noWrite)
		}
	})
	l.running.Go(func() {
		for ok := true; ok; ok = wait.For(l, countInterval) {
			v.countKeys(l, s)
		}
	})
	return l
}

// watchPause is how long watch waits before it begins again after an error that is not about one key. The session
// itself waits longer and longer for a broker that is away.
const watchPause = time.Second

// watch watches the keys of a view until ctx ends. It calls broken when changes may have been missed.
func (m *monitor) watch(ctx context.Context, v *view, s *client.Session, broken func()) {
	refused := make(map[string]time.Time) // when to try again
	for ctx.Err() == nil {
		var keys []string
		again := time.Now().Add(time.Hour)
		for _, key := range slices.Sorted(maps.Keys(v.readers)) {
			switch at, is := refused[key]; {
			case is && time.Now().Before(at):
				again = slices.MinFunc([]time.Time{again, at}, time.Time.Compare)
			default:
				delete(refused, key)
				keys = append(keys, key)
			}
		}
		if len(keys) == 0 {
			wait.For(ctx, time.Until(again))
			continue
		}
		limited, cancel := context.WithDeadline(ctx, again)
		err := m.watchKeys(limited, v, s, keys, refused, broken)
		over := limited.Err() != nil
		cancel()
		if e, one := errors.AsType[*client.WatchError](err); one && !fault.IsTimeout(err) && !endsSession(err) {
			m.refused(v, e.Key, e.Err)
			refused[e.Key] = time.Now().Add(m.refuse)
			continue
		}
		if !over {
			wait.For(ctx, watchPause)
		}
	}
}

// endsSession reports whether an error is about the connection, and not about a key.
func endsSession(err error) bool {
	return fault.IsA[*client.DialError](err) || fault.IsA[*client.LostError](err) || errors.Is(err, client.ErrClosed)
}

// watchKeys records the changes of keys until ctx ends or an error ends the watch. It adds to refused the keys
// that the store no longer lets it watch.
func (m *monitor) watchKeys(ctx context.Context, v *view, s *client.Session, keys []string, refused map[string]time.Time, broken func()) error {
	w, err := s.Watch(ctx, keys, client.WatchOptions{Audit: auditInterval})
	if err != nil {
		return err
	}
	defer w.Close()
	for e, err := range w.Events(ctx) {
		if err != nil {
			return err
		}
		switch e.Kind {
		case client.EventInitial, client.EventFound, client.EventResync, client.EventSet:
			if e.Kind == client.EventSet && !e.HasValue { // a notification without a value
				got, err := s.Get(ctx, e.Key)
				if err != nil {
					v.cannotRead(v.readers[e.Key], fault.Describe(client.Get(e.Key), err))
					continue
				}
				e.Value, e.HasValue, e.Version = got.Value, got.Found, got.Version
			}
			v.record(v.readers[e.Key], e.Value, e.HasValue, e.Version, e.Time)
		case client.EventDelete:
			v.record(v.readers[e.Key], nil, false, client.Version{}, e.Time)
		case client.EventError:
			m.refused(v, e.Key, e.Err)
			refused[e.Key] = time.Now().Add(m.refuse)
		case client.EventDown, client.EventGap: // or an audit found a change that no notification announced
			broken()
			return nil
		}
	}
	return nil
}

// refused records that the store refused to let a key be watched.
func (m *monitor) refused(v *view, key string, err error) {
	v.cannotRead(v.readers[key], fault.Describe(client.Get(key), err))
	m.log("%s: %s cannot be watched: %v; trying again in %v", v.context, format.Escape(key), err, m.refuse)
}

// gap counts a break of the watch, after which everything is unknown until it was looked at again.
func (v *view) gap() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.broker.gaps++
	v.forget()
}
