package emulator_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/mqtt"
	"github.com/sscli/sscli/internal/testkit/full"
	"github.com/sscli/sscli/internal/wire"
)

var crashRounds = flag.Int("crash-rounds", 20, "rounds of TestCrash")

// crashFile is the variable with the path of the data file for the process that is killed.
const crashFile = "EMULATOR_TEST_CRASH_FILE"

// TestCrashServer is the process that TestCrash kills: a server that prints its address.
func TestCrashServer(t *testing.T) {
	t.Parallel()
	name := os.Getenv(crashFile)
	if name == "" {
		return // not in that process
	}
	s, err := emulator.New(emulator.Options{Data: emulator.Data{File: name}})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("at", s.Addr())
	<-s.Done()
	t.Error(s.Err())
}

// TestCrash kills a server under load, again and again, and checks what the next server finds: every
// acknowledged write, and no write that was not requested. A write without a reply is present completely or
// not at all. Versions rise, and fences stay in force.
func TestCrash(t *testing.T) {
	full.Slow(t)
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "store.db")
	w.rounds(*crashRounds, func() (string, func()) { return startCrashServer(t, file) })
}

// progress returns the numbers of writes that were acknowledged and of values that were read or notified.
func (w *world) progress() (acknowledged, told int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acknowledged, w.told
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, keys: make(map[string]*tracked)}
	for worker := range writers {
		for n := range 8 {
			name := fmt.Sprintf("%d/%d", worker, n)
			w.keys[name] = &tracked{name: name, role: role(n % int(roles))}
		}
	}
	return w
}

// rounds runs n servers with the keys, one after the other. serve starts one and returns its address and a
// function that ends it.
func (w *world) rounds(n int, serve func() (address string, end func())) {
	t := w.t
	for range n {
		w.round(serve)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d rounds: %d writes were acknowledged, %d values were read or notified; of %d writes without an answer %d were there",
		n, w.acknowledged, w.told, w.open, w.openThere)
	if w.acknowledged < n || w.told < n || w.open == 0 {
		t.Error("there was hardly any load")
	}
}

// writers is the number of clients that write.
const writers = 6

// A role is the way in which a key is used.
type role int

const (
	plain    role = iota // set and deleted
	fenced               // set with rising tokens
	expiring             // set with a short expiry
	held                 // a lock: set with NEX by one holder, which renews and releases it
	roles
)

// An op is a write.
type op struct {
	number  int // number of the write among those of its key
	value   string
	deletes bool
	fence   string
	px      time.Duration
	version wire.Version // zero = not acknowledged

	sent, answered time.Time
}

// tracked is the known state of a key.
type tracked struct {
	name    string
	role    role
	numbers int
	last    op  // latest write that the store is known to have
	open    *op // write without a reply
	told    int // number of the latest value that was returned to a client
}

// world holds all keys. A succession of processes serves them.
type world struct {
	t  *testing.T
	mu sync.Mutex

	keys    map[string]*tracked
	highest wire.Version // highest version in any reply or notification
	atLeast wire.Version // a new version must be greater

	acknowledged, told, open, openThere int
}

// startCrashServer starts a process that serves the file.
func startCrashServer(t *testing.T, file string) (address string, kill func()) {
	cmd := exec.Command(os.Args[0], "-test.run", "^TestCrashServer$")
	cmd.Env = append(os.Environ(), crashFile+"="+file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		// Wait only reports that the process was killed.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	lines.Scan()
	address, ok := strings.CutPrefix(lines.Text(), "at ")
	if !ok {
		t.Fatalf("the server said %q", lines.Text())
	}
	return address, kill
}

// round checks the state of a server, puts load on it and ends it.
func (w *world) round(serve func() (address string, end func())) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*patience)
	defer cancel()
	address, end := serve()
	w.check(ctx, address)
	if w.t.Failed() {
		return
	}
	acknowledged, told := w.progress()
	var load sync.WaitGroup
	var ready sync.WaitGroup
	ready.Add(1)
	load.Go(func() { w.watch(ctx, address, &ready) })
	ready.Wait()
	for worker := range writers {
		load.Go(func() { w.write(ctx, address, fmt.Sprint(worker, "/")) })
	}
	// The server ends at a random time, because the progress of the writes must not matter.
	time.Sleep(time.Duration(5+rand.IntN(40)) * time.Millisecond)
	// On a slow machine, the first write of a round may take longer than that.
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(time.Millisecond) {
		if a, b := w.progress(); a > acknowledged && b > told {
			break
		}
	}
	end()
	load.Wait()
}

// asking is a connection with requests in flight.
type asking struct {
	conn *mqtt.Conn
	id   string

	mu      sync.Mutex
	next    int
	answers map[string]func(reply string, version wire.Version)
	notify  func(key, value string, version wire.Version)
}

func ask(ctx context.Context, address, id string) (*asking, error) {
	a := &asking{id: id, answers: make(map[string]func(string, wire.Version))}
	o := mqtt.Options{
		Address: address, ClientID: id, Subscribe: []string{"clients/" + id + "/response"}, OnMessage: a.receive,
	}
	if runtime.GOOS == "windows" {
		o.KeepAlive = 4 * time.Second // Wine can leave a connection of a killed process open
	}
	conn, err := mqtt.Dial(ctx, o)
	a.conn = conn
	return a, err
}

func (a *asking) receive(m mqtt.Message) {
	text, _ := m.Property(wire.PropTimestamp)
	version, _ := wire.ParseVersion(text)
	if _, key, ok := wire.ParseNotifyTopic(m.Topic); ok {
		if n, err := wire.ParseNotification(m.Payload); err == nil && n.HasValue && a.notify != nil {
			a.notify(key, string(n.Value), version)
		}
		return
	}
	a.mu.Lock()
	do := a.answers[string(m.Correlation)]
	delete(a.answers, string(m.Correlation))
	a.mu.Unlock()
	if do != nil {
		do(string(m.Payload), version)
	}
}

// do sends a request.
func (a *asking) do(ctx context.Context, fence string, words []string, answered func(reply string, version wire.Version)) error {
	a.mu.Lock()
	a.next++
	id := strconv.Itoa(a.next)
	a.answers[id] = answered
	a.mu.Unlock()
	m := mqtt.Message{
		Topic: wire.RequestTopic, ResponseTopic: "clients/" + a.id + "/response", Correlation: []byte(id),
		Payload: wire.AppendRequest(nil, words...), User: []mqtt.Property{{Name: wire.PropTimestamp, Value: "1:0:test"}},
	}
	if fence != "" {
		m.User = append(m.User, mqtt.Property{Name: wire.PropFence, Value: fence})
	}
	return a.conn.Publish(ctx, m, func(error) {})
}

// wait sends a request and returns the reply.
func (a *asking) wait(ctx context.Context, fence string, words ...string) (string, wire.Version, error) {
	type answer struct {
		reply   string
		version wire.Version
	}
	got := make(chan answer, 1)
	if err := a.do(ctx, fence, words, func(reply string, version wire.Version) { got <- answer{reply, version} }); err != nil {
		return "", wire.Version{}, err
	}
	select {
	case g := <-got:
		return g.reply, g.version, nil
	case <-a.conn.Done():
		return "", wire.Version{}, a.conn.Err()
	case <-ctx.Done():
		return "", wire.Version{}, ctx.Err()
	}
}

// write puts load on the keys of a worker, one request per key at a time, until the connection ends.
func (w *world) write(ctx context.Context, address, prefix string) {
	a, err := ask(ctx, address, "writer-"+strings.TrimSuffix(prefix, "/"))
	if err != nil {
		return // the server was killed before
	}
	defer a.conn.Close()
	free := make(chan *tracked, len(w.keys))
	for name, k := range w.keys {
		if strings.HasPrefix(name, prefix) {
			free <- k
		}
	}
	for {
		select {
		case k := <-free:
			o, words := w.begin(k)
			err := a.do(ctx, o.fence, words, func(reply string, version wire.Version) {
				w.answered(k, reply, version)
				free <- k
			})
			if err != nil {
				return
			}
		case <-a.conn.Done():
			return
		case <-ctx.Done():
			w.t.Error("the connection of a server that was killed does not end")
			return
		}
	}
}

// begin chooses the next write of a key.
func (w *world) begin(k *tracked) (*op, []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k.numbers++
	o := &op{number: k.numbers, value: fmt.Sprintf("%s/%d/%s", k.name, k.numbers, strings.Repeat("x", rand.IntN(200))), sent: time.Now()}
	words := []string{wire.VerbSet, k.name, o.value}
	switch {
	case k.role == fenced:
		o.fence = wire.Version{Wall: 1_000_000 + int64(k.numbers), Node: "holder"}.String()
	case k.role == expiring:
		o.px = time.Duration(1+rand.IntN(300)) * time.Millisecond
		words = append(words, wire.OptionPX, strconv.FormatInt(o.px.Milliseconds(), 10))
	case k.role == held && !k.last.deletes && k.last.number > 0 && k.numbers%5 == 0:
		o.deletes = true
		words = []string{wire.VerbVDel, k.name, k.last.value}
	case k.role == held:
		o.value = k.name + "/0/holder"
		o.px = time.Hour
		words = []string{wire.VerbSet, k.name, o.value, wire.OptionNEX, wire.OptionPX, strconv.FormatInt(o.px.Milliseconds(), 10)}
	case k.role == plain && !k.last.deletes && k.numbers%3 == 0:
		o.deletes = true
		words = []string{wire.VerbDel, k.name}
	}
	k.open = o
	return o, words
}

// answered records the reply to the write of a key.
func (w *world) answered(k *tracked, reply string, version wire.Version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := k.open
	o.version, o.answered = version, time.Now()
	switch {
	case !strings.HasPrefix(reply, "+OK") && !(o.deletes && (reply == ":1\r\n" || reply == ":0\r\n")):
		w.t.Errorf("write %+v: %q", o, reply)
	case !o.deletes && version.Compare(w.atLeast) <= 0:
		w.t.Errorf("write %+v: the version is not after %v, which was given before the restart", o, w.atLeast)
	case !o.deletes && version.Compare(k.last.version) <= 0:
		w.t.Errorf("write %+v: the version is not after that of %+v", o, k.last)
	}
	w.acknowledged++
	w.see(version)
	k.last, k.open = *o, nil
}

func (w *world) see(version wire.Version) {
	if version.Compare(w.highest) > 0 {
		w.highest = version
	}
}

// saw records that a value was returned to a client: the store must not lose it.
func (w *world) saw(key, value string, version wire.Version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told++
	w.see(version)
	k := w.keys[key]
	k.told = max(k.told, numberOf(value))
}

// numberOf returns the number of the write in a value.
func numberOf(value string) int {
	parts := strings.Split(value, "/")
	n, err := strconv.Atoi(parts[2])
	if err != nil {
		panic(err)
	}
	return n
}

// watch subscribes to notifications of all keys and reads the keys until the connection ends.
func (w *world) watch(ctx context.Context, address string, ready *sync.WaitGroup) {
	done := sync.OnceFunc(ready.Done)
	defer done()
	a, err := ask(ctx, address, "watcher")
	if err != nil {
		w.t.Error(err)
		return
	}
	defer a.conn.Close()
	a.notify = w.saw
	var names []string
	for name := range w.keys {
		names = append(names, name)
		if reply, _, err := a.wait(ctx, "", wire.VerbKeyNotify, name); err != nil || reply != "+OK\r\n" {
			w.t.Errorf("keynotify: %q, %v", reply, err)
		}
	}
	done()
	for ctx.Err() == nil {
		name := names[rand.IntN(len(names))]
		reply, version, err := a.wait(ctx, "", wire.VerbGet, name)
		if err != nil {
			return
		}
		if value, ok := blob(reply); ok {
			w.saw(name, value, version)
		}
	}
}

// blob returns the value in the reply to a GET.
func blob(reply string) (string, bool) {
	v, err := wire.ParseReply([]byte(reply))
	if err != nil || v.Value.Kind != wire.Blob {
		return "", false
	}
	return string(v.Value.Text), true
}

// check compares the state of a new server with what is known.
func (w *world) check(ctx context.Context, address string) {
	a, err := ask(ctx, address, "checker")
	if err != nil {
		w.t.Fatal(err)
	}
	defer a.conn.Close()
	w.atLeast = w.highest
	for _, k := range w.keys {
		asked := time.Now()
		reply, version, err := a.wait(ctx, "", wire.VerbGet, k.name)
		if err != nil {
			w.t.Fatal(err)
		}
		value, found := blob(reply)
		w.found(k, value, version, found, asked, time.Now())
		if k.role != fenced || !found {
			continue
		}
		lower := wire.Version{Wall: 999_999 + int64(k.last.number), Node: "holder"}.String()
		if reply, _, err := a.wait(ctx, "", wire.VerbSet, k.name, "x/0/0"); err != nil || !strings.Contains(reply, wire.TextFenceRequired) {
			w.t.Errorf("%s: a write without a token: %q, %v", k.name, reply, err)
		}
		if reply, _, err := a.wait(ctx, lower, wire.VerbSet, k.name, "x/0/0"); err != nil || !strings.Contains(reply, wire.TextFenceLower) {
			w.t.Errorf("%s: a write with the token %s, after %s: %q, %v", k.name, lower, k.last.fence, reply, err)
		}
	}
}

// found checks what a new server has for a key.
func (w *world) found(k *tracked, value string, version wire.Version, found bool, asked, answered time.Time) {
	fits := func(o op) bool {
		may := found && !o.deletes && o.number > 0 && value == o.value && (o.version == wire.Version{} || version == o.version)
		if o.px > 0 && !o.answered.IsZero() {
			may = may && asked.Before(o.answered.Add(o.px))
		}
		if !found {
			may = o.deletes || o.number == 0 || o.px > 0 && !answered.Before(o.sent.Add(o.px))
		}
		return may
	}
	var why error
	switch o := k.open; {
	case fits(k.last) && k.told <= k.last.number:
		if o != nil {
			w.open++
		}
	case o != nil && fits(*o):
		w.open++
		w.openThere++
		k.last = *o
		k.last.version = version
	default:
		why = errors.New("none of the writes that it may have")
	}
	k.open = nil
	if why != nil {
		w.t.Errorf("%s: found %t %q, version %v: %v; known: %+v, open: %+v, shown: %d", k.name, found, value, version, why, k.last, k.open, k.told)
	}
}
