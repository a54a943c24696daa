package harness

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Lines for Mosquitto's configuration.
const (
	NoDelay   = "set_tcp_nodelay true\n"
	Unlimited = "max_queued_messages 0\nmax_inflight_messages 0\n"
)

// An Endpoint is the address of a server on 127.0.0.1.
type Endpoint struct {
	Port string
	CA   string // PEM file with the CA of the server's certificate; empty without TLS
	PID  int    // process id of the server; 0 for Mosquitto
}

// Address returns host:port.
func (e Endpoint) Address() string { return net.JoinHostPort("127.0.0.1", e.Port) }

// Args returns the words of an sscli command that connects to a broker, with the program first.
func (b *Bench) Args(e Endpoint, args ...string) []string {
	words := []string{b.SSCLI, "-u", "mqtt://" + e.Address()}
	if e.CA != "" {
		words = []string{b.SSCLI, "-u", "mqtts://" + e.Address(), "--ca-file", e.CA}
	}
	return append(words, args...)
}

// Command returns an sscli command that connects to a broker.
func (b *Bench) Command(ctx context.Context, e Endpoint, args ...string) *exec.Cmd {
	words := b.Args(e, args...)
	return exec.CommandContext(ctx, words[0], words[1:]...)
}

// Mosquitto starts a Mosquitto with lines added to its configuration, and attaches a
// store to it.
func (b *Bench) Mosquitto(ctx context.Context, lines string) (Endpoint, error) {
	return b.mosquitto(ctx, "", lines)
}

// SecureMosquitto is like [Bench.Mosquitto], but its listener uses TLS.
func (b *Bench) SecureMosquitto(ctx context.Context, lines string) (Endpoint, error) {
	certificate, key := filepath.Join(b.Dir, "cert.pem"), filepath.Join(b.Dir, "key.pem")
	if err := writeCertificate(certificate, key); err != nil {
		return Endpoint{}, err
	}
	return b.mosquitto(ctx, certificate, lines+fmt.Sprintf("certfile %s\nkeyfile %s\n", certificate, key))
}

func (b *Bench) mosquitto(ctx context.Context, authority, lines string) (Endpoint, error) {
	port, err := FreePort()
	if err != nil {
		return Endpoint{}, err
	}
	e := Endpoint{Port: port, CA: authority}
	config := filepath.Join(b.Dir, "mosquitto-"+port)
	// "user root" keeps a Mosquitto that runs as root from changing to another user.
	text := fmt.Sprintf("user root\nlistener %s 127.0.0.1\nallow_anonymous true\n%s", port, lines)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return e, err
	}
	if err := b.Start(exec.CommandContext(ctx, "mosquitto", "-c", config), " running"); err != nil {
		return e, err
	}
	return e, b.Start(b.Command(ctx, e, "serve", "--attach", "-o", "human"), "ready")
}

// Serve starts the emulator as a server.
func (b *Bench) Serve(ctx context.Context) (Endpoint, error) {
	port, err := FreePort()
	if err != nil {
		return Endpoint{}, err
	}
	e := Endpoint{Port: port}
	return b.endpoint(e, exec.CommandContext(ctx, b.SSCLI, "serve", "--listen", e.Address(), "-o", "human"), "ready")
}

// endpoint starts the server of e with cmd, and returns e with its PID.
func (b *Bench) endpoint(e Endpoint, cmd *exec.Cmd, ready string) (Endpoint, error) {
	if err := b.Start(cmd, ready); err != nil {
		return e, err
	}
	e.PID = cmd.Process.Pid
	return e, nil
}

// Redis starts a Redis server without persistence.
func (b *Bench) Redis(ctx context.Context) (Endpoint, error) {
	port, err := FreePort()
	if err != nil {
		return Endpoint{}, err
	}
	cmd := exec.CommandContext(ctx, "redis-server", "--port", port, "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", b.Dir)
	return b.endpoint(Endpoint{Port: port}, cmd, "eady to accept connections")
}

// Start starts a server and waits until it prints a line that contains the text in ready. The
// server is terminated by [Stop], or at the end of the benchmark. Start discards what the server
// prints later, except for standard error if cmd.Stderr is set.
func (b *Bench) Start(cmd *exec.Cmd, ready string) error {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = write
	if cmd.Stderr == nil {
		cmd.Stderr = write
	}
	err = cmd.Start()
	write.Close()
	if err != nil {
		read.Close()
		return err
	}
	b.servers = append(b.servers, cmd)
	var said strings.Builder
	lines := bufio.NewScanner(read)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), ready) {
			go func() { // ends with the server
				_, _ = io.Copy(io.Discard, read)
				read.Close()
			}()
			return nil
		}
	}
	read.Close()
	return fmt.Errorf("%s ended: %s", cmd.Args[0], said.String())
}

// Stop terminates a server and waits for its end.
func Stop(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = cmd.Wait()                          // an error is expected after the signal
}

// Resident returns the resident memory of the last server that was started, in MB.
func (b *Bench) Resident() (float64, error) {
	kB, err := Memory(b.servers[len(b.servers)-1].Process.Pid, "VmRSS")
	return kB / 1000, err
}

// Memory returns a memory field of /proc/PID/status, such as VmHWM, in kB.
func Memory(pid int, field string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("memory needs Linux's /proc: %w", err)
	}
	_, rest, _ := strings.Cut(string(status), field+":")
	var kB float64
	if _, err := fmt.Sscanf(rest, "%f kB", &kB); err != nil {
		return 0, fmt.Errorf("%s of process %d: %w", field, pid, err)
	}
	return kB, nil
}

// CPU returns the CPU time that a process has used, in seconds, with a resolution of 10 ms.
func CPU(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time needs Linux's /proc: %w", err)
	}
	// The second field, the name in parentheses, may contain spaces.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	// In proc(5), utime is field 14 and stime field 15, and fields[0] is field 3. Times are in
	// hundredths of a second.
	const utime, stime, ticks = 14 - 3, 15 - 3, 100
	if len(fields) <= stime {
		return 0, fmt.Errorf("CPU time of process %d: got %q", pid, stat)
	}
	user, err := strconv.ParseUint(fields[utime], 10, 64)
	system, failed := strconv.ParseUint(fields[stime], 10, 64)
	return float64(user+system) / ticks, errors.Join(err, failed)
}

// wait waits for the servers after their context has ended.
func (b *Bench) wait() {
	for _, cmd := range b.servers {
		_ = cmd.Wait() // an error is expected after the signal
	}
}

// FreePort returns a port on which nothing listens, for servers that cannot choose one.
func FreePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, err
}

// writeCertificate writes a certificate for 127.0.0.1 that is its own CA.
func writeCertificate(certificate, key string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
}
