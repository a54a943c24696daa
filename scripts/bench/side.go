//go:build linux

package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sscli/sscli/scripts/harness"
)

// value is the value of most keys.
var value = strings.Repeat("v", 100)

// inflight is the number of requests that batch keeps in flight.
const inflight = 256

// A side is a program under test with its servers. kept has the results of once for a group of rows.
type side struct {
	*bench
	sscli   string
	dir     string // for files of this side
	kept    map[string]any
	servers []*exec.Cmd
}

func (b *bench) side(sscli string) *side {
	dir := harness.Must(os.MkdirTemp(b.Dir, "side"))
	return &side{bench: b, sscli: sscli, dir: dir, kept: make(map[string]any)}
}

// stop ends the servers of a side.
func (s *side) stop() {
	for _, cmd := range slices.Backward(s.servers) {
		harness.Stop(cmd)
	}
}

// once returns the result of build in the first call with this name.
func once[T any](s *side, name string, build func() T) T {
	if _, found := s.kept[name]; !found {
		s.kept[name] = build()
	}
	return s.kept[name].(T)
}

// An endpoint is a server on 127.0.0.1.
type endpoint struct {
	port  string
	redis string // port of the Redis port of serve
	ca    string // PEM file with the CA of the server's certificate; empty without TLS
	cmd   *exec.Cmd
}

func (e endpoint) address() string { return net.JoinHostPort("127.0.0.1", e.port) }
func (e endpoint) pid() int        { return e.cmd.Process.Pid }

// resident returns the memory of a server, in MB.
func (e endpoint) resident() float64 {
	return harness.Must(harness.Memory(e.pid(), "VmRSS")) * (1 << 20) / 1e6
}

// settled returns the lowest memory of a server within a time, in MB. It returns early when the memory is at
// most goal.
func (e endpoint) settled(within time.Duration, goal float64) float64 {
	lowest := e.resident()
	for end := time.Now().Add(within); lowest > goal && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		lowest = min(lowest, e.resident())
	}
	return lowest
}

// start starts a server.
func (s *side) start(e endpoint, ready string, args ...string) endpoint {
	e.cmd = exec.CommandContext(s.ctx, args[0], args[1:]...)
	harness.Check(s.Start(e.cmd, ready))
	s.servers = append(s.servers, e.cmd)
	return e
}

func freePort() string { return harness.Must(harness.FreePort()) }

// serve starts the emulator with further flags.
func (s *side) serve(flags ...string) endpoint {
	e := endpoint{port: freePort()}
	return s.start(e, "ready", append([]string{s.sscli, "serve", "--listen", e.address(), "-o", "human"}, flags...)...)
}

// emulator returns a running emulator.
func (s *side) emulator() endpoint { return once(s, "emulator", func() endpoint { return s.serve() }) }

// redisPort returns a running emulator with a Redis port.
func (s *side) redisPort() endpoint {
	return once(s, "redisPort", func() endpoint { return s.serveRedis() })
}

// serveRedis starts the emulator with a Redis port.
func (s *side) serveRedis() endpoint {
	port := freePort()
	e := s.serve("--redis", "127.0.0.1:"+port)
	e.redis = port
	return e
}

// redisServer returns a running Redis server without persistence.
func (s *side) redisServer() endpoint { return once(s, "redis-server", s.startRedis) }

func (s *side) startRedis() endpoint {
	port := freePort()
	return s.start(endpoint{port: port, redis: port}, "eady to accept connections", "redis-server", "--port", port, "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", s.dir)
}

// mosquitto returns a running Mosquitto with an attached store. kind is "stock", which has
// Mosquitto's defaults, "nodelay", which has neither Nagle's algorithm nor limits of messages, or "tls".
func (s *side) mosquitto(kind string) endpoint {
	return once(s, kind, func() endpoint {
		e := endpoint{port: freePort()}
		// "user root" keeps a Mosquitto that runs as root from changing to another user.
		text := fmt.Sprintf("user root\nlistener %s 127.0.0.1\nallow_anonymous true\n", e.port)
		switch kind {
		case "nodelay":
			text += "set_tcp_nodelay true\nmax_queued_messages 0\nmax_inflight_messages 0\n"
		case "tls":
			key := filepath.Join(s.dir, "key.pem")
			e.ca = filepath.Join(s.dir, "cert.pem")
			writeCertificate(e.ca, key)
			text += fmt.Sprintf("certfile %s\nkeyfile %s\n", e.ca, key)
		}
		config := filepath.Join(s.dir, "mosquitto-"+kind)
		harness.Check(os.WriteFile(config, []byte(text), 0o600))
		e = s.start(e, " running", "mosquitto", "-c", config)
		s.start(e, "ready", s.args(e, "serve", "--attach", "-o", "human")...)
		s.run(s.args(e, "set", "k", "v")...)
		return e
	})
}

// args returns the words of an sscli command that connects to a broker, with the program first.
func (s *side) args(e endpoint, args ...string) []string {
	words := []string{s.sscli, "-u", "mqtt://" + e.address()}
	if e.ca != "" {
		words = []string{s.sscli, "-u", "mqtts://" + e.address(), "--ca-file", e.ca}
	}
	return append(words, args...)
}

// A usage is the resources that a command used.
type usage struct {
	took   time.Duration
	cpu    time.Duration
	peak   float64 // peak memory in MB; 0 = not known
	faults float64 // page faults without I/O
}

// memory returns the peak memory in MB.
func (u usage) memory() float64 {
	if u.peak == 0 {
		harness.Check(errors.New("the command used no more memory than the process that started it"))
	}
	return u.peak
}

// run runs a command and discards its output.
func (b *bench) run(args ...string) usage { return b.runWith("", args...) }

// runWith is run with a file as standard input. A new process of this program starts the command, see [measured].
func (b *bench) runWith(input string, args ...string) (u usage) {
	cmd := exec.CommandContext(b.ctx, harness.Must(os.Executable()), append([]string{"run"}, args...)...)
	if input != "" {
		in := harness.Must(os.Open(input))
		defer in.Close()
		cmd.Stdin = in
	}
	var out strings.Builder
	cmd.Stdout = &out
	cmd.WaitDelay = time.Second // for the command, which ends after this program
	harness.Must(harness.Run(cmd))
	harness.Must(fmt.Sscan(out.String(), &u.took, &u.cpu, &u.peak, &u.faults))
	return u
}

// measured runs a command and prints its usage. The peak that Linux counts for a command begins with that of the
// process that starts it, so this must be a process that has used little memory.
func measured(args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = os.Stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the death of the thread would send the signal too
	took, err := harness.Run(cmd)
	if err != nil {
		return err
	}
	own, err := harness.Memory(os.Getpid(), "VmHWM")
	if err != nil {
		return err
	}
	r := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	peak := float64(r.Maxrss) * 1024 / 1e6
	if float64(r.Maxrss)/1024 <= own {
		peak = 0
	}
	fmt.Println(int64(took), int64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()), peak, r.Minflt)
	return nil
}

// output runs a command and returns its standard output.
func (b *bench) output(args ...string) string {
	var out strings.Builder
	cmd := exec.CommandContext(b.ctx, args[0], args[1:]...)
	cmd.Stdout = &out
	harness.Must(harness.Run(cmd))
	return out.String()
}

// file returns the name of a file of n lines, which it writes unless it exists. line is a format
// string; its operands are the number of the line, from 0, and value.
func (b *bench) file(n int, line string) string {
	name := filepath.Join(b.Dir, fmt.Sprintf("%d-%x", n, line))
	if _, err := os.Stat(name); err == nil {
		return name
	}
	f := harness.Must(os.Create(name))
	w := bufio.NewWriter(f)
	for i := range n {
		fmt.Fprintf(w, line, i, value)
	}
	harness.Check(w.Flush())
	harness.Check(f.Close())
	return name
}

// Lines for [bench.file]. setWords and delWords are commands for a Redis server.
const (
	setLine  = "set key%08d %s\n"
	getLine  = "get key%08d\n%.0s"
	delLine  = "del key%08d\n%.0s"
	setWords = "*3\r\n$3\r\nSET\r\n$11\r\nkey%08d\r\n$100\r\n%s\r\n"
	delWords = "*2\r\n$3\r\nDEL\r\n$11\r\nkey%08d\r\n%.0s"
)

// batch runs batch with n lines; see [bench.file].
func (s *side) batch(e endpoint, inflight, n int, line string) usage {
	return s.run(s.args(e, "batch", s.file(n, line), "--inflight", strconv.Itoa(inflight))...)
}

// pipe runs `redis-cli --pipe` with n lines; see [bench.file].
func (b *bench) pipe(e endpoint, n int, line string) usage {
	return b.runWith(b.file(n, line), "redis-cli", "-p", e.redis, "--pipe")
}

// loaded returns an emulator with n keys.
func (s *side) loaded(n int) endpoint {
	return once(s, fmt.Sprint("loaded", n), func() endpoint {
		e := s.serve()
		s.batch(e, inflight, n, setLine)
		return e
	})
}

// exported returns the name of a file with the n keys of [side.loaded].
func (s *side) exported(n int) string {
	return once(s, fmt.Sprint("exported", n), func() string {
		name := filepath.Join(s.dir, fmt.Sprint(n, ".jsonl"))
		s.run(s.args(s.loaded(n), "export", "-f", name)...)
		return name
	})
}

// benchRate returns the requests per second of `sscli bench`.
func (s *side) benchRate(e endpoint, flags ...string) float64 {
	line, _, _ := strings.Cut(s.output(s.args(e, append([]string{"bench", "-o", "raw"}, flags...)...)...), "\n")
	fields := strings.Split(line, "\t")
	if len(fields) < 4 {
		harness.Check(fmt.Errorf("sscli bench printed %q", line))
	}
	return harness.Must(strconv.ParseFloat(fields[3], 64))
}

// cpuOf calls meanwhile and returns the CPU time that a process uses during the call, in seconds,
// with a resolution of 10 ms.
func cpuOf(pid int, meanwhile func()) float64 {
	before := harness.Must(harness.CPU(pid))
	meanwhile()
	return (harness.Must(harness.CPU(pid)) - before).Seconds()
}

// detail prints the CPU time per request, which depends less on other load of the machine.
func detail(name string, rate float64, n int, server, sender float64) {
	perRequest := func(seconds float64) float64 { return seconds * 1e6 / float64(n) }
	fmt.Fprintf(os.Stderr, "  %-14s %10.0f a second; µs of CPU a request: %6.2f server, %6.2f sender\n", name, rate, perRequest(server), perRequest(sender))
}

// writeCertificate writes a certificate for 127.0.0.1 that is its own CA.
func writeCertificate(certificate, key string) {
	private := harness.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der := harness.Must(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))
	keyDER := harness.Must(x509.MarshalPKCS8PrivateKey(private))
	harness.Check(os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	harness.Check(os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
}
