package client

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/files"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/systext"
)

// jwt returns a token with its times of issue and expiry. Its signature is never checked here.
func jwt(issued, expires time.Time) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"RS256"}`) + "." + part(fmt.Sprintf(`{"iat":%d,"exp":%d,"sub":"ann"}`, issued.Unix(), expires.Unix())) + "." + part("signature")
}

// A tokenFile is a file that is replaced as Kubernetes does it: its path leads through a symbolic link to a
// directory, and the link is replaced. On a system without symbolic links the file itself is replaced.
type tokenFile struct {
	t     *testing.T
	dir   string
	name  string
	links bool
	n     int
}

func newTokenFile(t *testing.T, content string) *tokenFile {
	t.Helper()
	f := &tokenFile{t: t, dir: t.TempDir()}
	f.name = filepath.Join(f.dir, "token")
	// Wine reports success and creates no link. Windows cannot replace a link to a directory.
	if f.links = runtime.GOOS != "windows"; f.links {
		if err := os.Symlink(filepath.Join("..data", "token"), f.name); err != nil {
			t.Fatal(err)
		}
	}
	f.write(content)
	return f
}

func (f *tokenFile) write(content string) {
	f.t.Helper()
	f.n++
	version, link := fmt.Sprintf("..%d", f.n), filepath.Join(f.dir, "..tmp")
	err := errors.Join(
		os.Mkdir(filepath.Join(f.dir, version), 0o700),
		os.WriteFile(filepath.Join(f.dir, version, "token"), []byte(content), 0o600),
	)
	if f.links {
		err = errors.Join(err, os.Symlink(version, link), os.Rename(link, filepath.Join(f.dir, "..data")))
	} else {
		// A session may be reading the file.
		err = errors.Join(err, files.RetryBusy(func() error { return os.Rename(filepath.Join(f.dir, version, "token"), f.name) }))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// A gate decides which tokens a broker accepts, and records those that it has seen.
type gate struct {
	mu   sync.Mutex
	good string
	seen []string
	news chan string
}

func newGate(good string) *gate { return &gate{good: good, news: make(chan string, 1000)} }

func (g *gate) check(token []byte, _ time.Time) (emulator.Login, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = append(g.seen, string(token))
	g.news <- string(token)
	if g.good != "" && string(token) != g.good {
		return emulator.Login{}, errors.New("not the good token")
	}
	return emulator.Login{}, nil
}

func (g *gate) want(good string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.good = good
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.seen)
}

// await waits until the broker has seen a token.
func (g *gate) await(t *testing.T, token string) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case seen := <-g.news:
			if seen == token {
				return
			}
		case <-late:
			t.Fatalf("the broker was not shown %q", token)
		}
	}
}

func (g *gate) start(t *testing.T) *emulator.Server {
	t.Helper()
	return emulator.Start(t, emulator.Options{CheckToken: g.check})
}

const soon = 5 * time.Millisecond

func satOptions(store *emulator.Server, f *tokenFile) Options {
	return Options{Address: store.Addr().String(), TokenFile: f.name, TokenPoll: soon}
}

func TestTokenIsTrimmedAndReadAtEveryConnect(t *testing.T) {
	t.Parallel()
	g := newGate("one")
	store := g.start(t)
	f := newTokenFile(t, "\xff\xfeo\x00n\x00e\x00 \x00\r\x00\n\x00") // UTF-16, as Windows PowerShell writes it
	o := satOptions(store, f)
	o.TokenPoll = time.Hour
	s := watchSession(t, o)
	if _, err := s.Get(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	for token, text := range map[string]string{"two": "two \r\n\n", "three": "\ufeffthree\n"} {
		f.write(text)
		g.want(token)
		store.DropAll()
		<-s.current().Done()
		if _, err := s.Get(t.Context(), "k"); err != nil {
			t.Error(err)
		}
	}
}

func TestTokenFileWithoutAToken(t *testing.T) {
	t.Parallel()
	store := newGate("").start(t)
	f := newTokenFile(t, " \n")
	long := newTokenFile(t, strings.Repeat("x", 1<<16))
	half := newTokenFile(t, "\xff\xfea\x00b")
	for file, want := range map[string]string{
		f.name:                        "the file is empty",
		filepath.Join(f.dir, "no"):    "no such file",
		f.dir:                         "is a directory",
		long.name:                     "too long for a token",
		half.name:                     "not UTF-16: half of a character at byte 4",
		filepath.Join(f.dir, "\x00x"): "invalid argument",
	} {
		_, err := Dial(t.Context(), Options{Address: store.Addr().String(), TokenFile: file})
		dialError, ok := errors.AsType[*mqtt.DialError](err)
		token, typed := errors.AsType[*TokenError](err)
		if !ok || dialError.Stage != mqtt.StageConnect || !typed || token.File != file || !token.Expiry.IsZero() || !strings.Contains(systext.Unix(err.Error()), want) {
			t.Errorf("%q: %v", file, err)
		}
	}
	if n := store.State().Connections; n != 0 {
		t.Errorf("%d connections", n)
	}
}

func TestExpiredTokenIsNamed(t *testing.T) {
	t.Parallel()
	store := newGate("another").start(t)
	now := time.Now().Truncate(time.Second)
	f := newTokenFile(t, jwt(now.Add(-2*time.Hour), now.Add(-time.Hour)))
	_, err := Dial(t.Context(), satOptions(store, f))
	token, ok := errors.AsType[*TokenError](err)
	if !ok || !token.Expiry.Equal(now.Add(-time.Hour)) || token.File != f.name {
		t.Fatalf("%v", err)
	}
	if code, _ := mqtt.ReasonCode(err); code != mqtt.ReasonNotAuthorized || !strings.Contains(err.Error(), "expired at "+token.Expiry.Format(time.RFC3339)) {
		t.Errorf("%v", err)
	}
	if dialError, ok := errors.AsType[*mqtt.DialError](err); !ok || dialError.Stage != mqtt.StageConnect {
		t.Errorf("%v", err)
	}
	for _, other := range []string{"no JWT", jwt(now, now.Add(time.Hour))} {
		f.write(other)
		_, err := Dial(t.Context(), satOptions(store, f))
		if _, ok := errors.AsType[*TokenError](err); ok || !isLoginRefusal(err) {
			t.Errorf("%s: %v", other, err)
		}
	}
}

func TestNewTokenIsShownToTheBroker(t *testing.T) {
	t.Parallel()
	g := newGate("")
	store := g.start(t)
	f := newTokenFile(t, "one")
	s := watchSession(t, satOptions(store, f))
	w := startWatch(t, s, WatchOptions{}, "k")
	wantEvents(t, w, "initial k")
	for i := range 3 {
		f.write(" ") // while the file is replaced
		f.write(fmt.Sprintf("new-%d\n", i))
		g.await(t, fmt.Sprintf("new-%d", i))
	}
	write(t, store, "SET", "k", "v")
	wantEvents(t, w, `set k "v"`) // without a break
}

func TestTokenIsRenewedWhenItHasLittleLifeLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate("")
		store := startVirtual(t, emulator.Options{CheckToken: g.check})
		defer store.Close()
		now := time.Now()
		// 80 % of its lifetime are over in less than two seconds.
		token := jwt(now.Add(-8*time.Hour), now.Add(2*time.Hour+2*time.Second))
		s := store.dial(t, newBarrier(), Options{TokenFile: newTokenFile(t, token).name, TokenPoll: time.Hour})
		defer s.Close()
		g.await(t, token)
		g.await(t, token)
	})
}

func TestBrokerThatCannotSayNowIsAskedAgain(t *testing.T) {
	t.Parallel()
	g := newGate("")
	store := g.start(t)
	asked := make(chan string, 1000)
	store.RefuseReauth(func(_ string, token []byte) byte {
		asked <- string(token)
		return 0x18
	})
	f := newTokenFile(t, "one")
	s := watchSession(t, satOptions(store, f))
	f.write("two")
	for range 3 {
		if token := <-asked; token != "two" {
			t.Errorf("shown was %q", token)
		}
	}
	store.RefuseReauth(nil)
	g.await(t, "two")
	if _, err := s.Get(t.Context(), "k"); err != nil {
		t.Error(err)
	}
}

func TestRefusedReauthenticationMeansANewConnection(t *testing.T) {
	t.Parallel()
	g := newGate("")
	store := g.start(t)
	store.RefuseReauth(func(string, []byte) byte { return mqtt.ReasonNotAuthorized })
	f := newTokenFile(t, "one")
	write(t, store, "SET", "k", "1")
	s := watchSession(t, satOptions(store, f))
	w := startWatch(t, s, WatchOptions{}, "k")
	wantEvents(t, w, `initial k "1"`)
	g.await(t, "one")
	f.write("two")
	events := wantEvents(t, w, "down", `resync k "1" proven`, "up")
	if _, ok := errors.AsType[*mqtt.ReauthError](events[0].Err); !ok {
		t.Errorf("down: %v", events[0].Err)
	}
	g.await(t, "two")
	write(t, store, "SET", "k", "2")
	wantEvents(t, w, `set k "2"`)

	// The new token is refused too, which is final.
	g.want("four")
	f.write("three")
	wantEvents(t, w, "down")
	if _, err := w.Next(t.Context()); !isLoginRefusal(err) {
		t.Errorf("%v", err)
	}
	before := g.count()
	for range 3 {
		if _, err := s.Get(t.Context(), "k"); !isLoginRefusal(err) {
			t.Errorf("%v", err)
		}
	}
	if after := g.count(); after != before {
		t.Errorf("the broker was asked %d times with the same token", after-before)
	}
	f.write("four")
	if _, err := s.Get(t.Context(), "k"); err != nil {
		t.Errorf("with a new token: %v", err)
	}
}

// TestTokenReplacedBetweenReadingAndTheAnswer: protocol.md 8.2.
func TestTokenReplacedBetweenReadingAndTheAnswer(t *testing.T) {
	t.Parallel()
	f := newTokenFile(t, "one")
	g := newGate("two")
	store := emulator.Start(t, emulator.Options{CheckToken: func(token []byte, now time.Time) (emulator.Login, error) {
		login, err := g.check(token, now)
		if string(token) == "one" {
			f.write("two")
		}
		return login, err
	}})
	s := watchSession(t, satOptions(store, f))
	if _, err := s.Get(t.Context(), "k"); err != nil || g.count() != 2 {
		t.Errorf("%d tries: %v", g.count(), err)
	}
}

func TestTokenExcludesUserAndPassword(t *testing.T) {
	t.Parallel()
	read := func() ([]byte, error) { return nil, nil }
	for _, o := range []Options{
		{TokenFile: "f", Username: "u"},
		{TokenFile: "f", Password: read},
		{TokenFile: "f", TokenPoll: -1},
		{WebSocket: "mqtt"},
	} {
		_, err := Dial(t.Context(), o)
		if _, ok := errors.AsType[*InvalidError](err); !ok {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestPasswordIsReadForEachConnection(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	want, have := "one", "one"
	set := func(to *string, value string) {
		mu.Lock()
		defer mu.Unlock()
		*to = value
	}
	missing := errors.New("no such file")
	store := emulator.Start(t, emulator.Options{CheckLogin: func(user string, password []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		return user == "ann" && string(password) == want
	}})
	s := watchSession(t, Options{Address: store.Addr().String(), Username: "ann", Password: func() ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if have == "" {
			return nil, missing
		}
		return []byte(have), nil
	}})
	lose := func() {
		t.Helper()
		store.DropAll()
		<-s.current().Done()
	}
	set(&want, "two")
	lose()
	for range 2 {
		if _, err := s.Get(t.Context(), "k"); !isLoginRefusal(err) {
			t.Errorf("the old password: %v", err)
		}
	}
	set(&have, "two")
	if _, err := s.Get(t.Context(), "k"); err != nil {
		t.Errorf("the new password: %v", err)
	}
	lose()
	set(&have, "")
	_, err := s.Get(t.Context(), "k")
	if dialError, ok := errors.AsType[*mqtt.DialError](err); !ok || dialError.Stage != mqtt.StageConnect || !errors.Is(err, missing) {
		t.Errorf("no password: %v", err)
	}
	set(&have, "two")
	if _, err := s.Get(t.Context(), "k"); err != nil {
		t.Errorf("again: %v", err)
	}
}

// current is the session's connection.
func (s *Session) current() *mqtt.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

func TestTokenTimes(t *testing.T) {
	t.Parallel()
	payload := func(s string) string { return "h." + base64.RawURLEncoding.EncodeToString([]byte(s)) + ".s" }
	for token, want := range map[string][2]int64{
		payload(`{"exp":200,"iat":100}`):             {100, 200},
		payload(`{"exp":200.9}`):                     {0, 200},
		payload(`{"iat":1e9}`):                       {1e9, 0},
		payload(`{"exp":"200"}`):                     {},
		payload(`{"exp":-1,"iat":0}`):                {},
		payload(`{"exp":1e300}`):                     {},
		payload(`{"exp":1e999}`):                     {},
		payload(`[]`):                                {},
		payload(`{"exp":200`):                        {},
		"":                                           {},
		"a.b":                                        {},
		"a.!.c":                                      {},
		payload(`{"exp":200}`) + ".more":             {},
		"h." + strings.Repeat("A", 1<<15) + ".":      {},
		payload(`{"exp":null,"iat":{"exp":200}}`):    {},
		payload(`{"exp":200,"exp":300,"aud":["x"]}`): {0, 300},
	} {
		unix := func(at time.Time) int64 {
			if at.IsZero() {
				return 0
			}
			return at.Unix()
		}
		issued, expires := TokenTimes([]byte(token))
		if unix(issued) != want[0] || unix(expires) != want[1] {
			t.Errorf("%.60q: %v, %v, want %v", token, issued, expires, want)
		}
	}
}

func TestRenewalAt(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	at := func(s int64) time.Time { return now.Add(time.Duration(s) * time.Second) }
	for _, test := range []struct{ issued, expires, want int64 }{
		{0, 1000, 800},
		{-500, 500, 300},
		{-900, 100, 0},   // 80 % of the lifetime are over
		{-900, -100, 0},  // the token has expired
		{100, 1100, 900}, // the clocks differ
	} {
		got := renewalAt([]byte(jwt(at(test.issued), at(test.expires))), now)
		if test.want == 0 && !got.IsZero() || test.want != 0 && !got.Equal(at(test.want)) {
			t.Errorf("%+v: %v", test, got)
		}
	}
	if got := renewalAt([]byte("no JWT"), now); !got.IsZero() {
		t.Errorf("%v", got)
	}
}

// FuzzTokenTimes: the times in a token are found, whatever surrounds them, and text that is not a token
// yields no absurd times.
func FuzzTokenTimes(f *testing.F) {
	f.Add([]byte("a.eyJleHAiOjF9.c"), int64(1), int64(2))
	f.Add([]byte(jwt(time.Unix(100, 0), time.Unix(200, 0))), int64(1_700_000_000), int64(1_700_086_400))
	f.Fuzz(func(t *testing.T, raw []byte, issued, expires int64) {
		for _, at := range []time.Time{first(TokenTimes(raw)), second(TokenTimes(raw))} {
			if !at.IsZero() && (at.Unix() < 0 || at.UTC().Year() > 9999) {
				t.Fatalf("%q: %v", raw, at)
			}
		}
		if at := renewalAt(raw, time.Unix(issued%1e10, 0)); !at.IsZero() && !at.After(time.Unix(issued%1e10, 0)) {
			t.Fatalf("%q: %v is over", raw, at)
		}
		if issued < 1 || expires < 1 || issued > 1e11 || expires > 1e11 {
			return
		}
		i, e := TokenTimes([]byte(jwt(time.Unix(issued, 0), time.Unix(expires, 0))))
		if i.Unix() != issued || e.Unix() != expires {
			t.Fatalf("%v, %v, want %d, %d", i, e, issued, expires)
		}
	})
}

func first(a, _ time.Time) time.Time { return a }

func second(_, b time.Time) time.Time { return b }
