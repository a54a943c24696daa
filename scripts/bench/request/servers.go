package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sscli/sscli/client/wire"
)

// servers starts servers and ends them.
type servers struct {
	ctx        context.Context
	sscli, dir string
	running    []*exec.Cmd
}

// An endpoint is where a server listens, on loopback.
type endpoint struct {
	port   string
	secure bool
}

func (e endpoint) url() string {
	if e.secure {
		return "mqtts://localhost:" + e.port
	}
	return "mqtt://127.0.0.1:" + e.port
}

func (s *servers) command(name string, args ...string) *exec.Cmd {
	return exec.CommandContext(s.ctx, name, args...)
}

// time runs a command and returns how long that took.
func (s *servers) time(args []string) (time.Duration, error) {
	cmd := s.command(args[0], args[1:]...)
	var said bytes.Buffer
	cmd.Stderr = &said
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	if err != nil {
		return took, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, said.String())
	}
	return took, nil
}

// start runs a server until what it says has a line that ready likes.
func (s *servers) start(ready func(line string) bool, args ...string) error {
	cmd := s.command(args[0], args[1:]...)
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = write, write
	err = cmd.Start()
	write.Close()
	if err != nil {
		read.Close()
		return err
	}
	s.running = append(s.running, cmd)
	var said strings.Builder
	lines := bufio.NewScanner(read)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if ready(lines.Text()) {
			go func() { // ends with the server
				_, _ = io.Copy(io.Discard, read)
				read.Close()
			}()
			return nil
		}
	}
	read.Close()
	return fmt.Errorf("%s ended: %s", args[0], said.String())
}

func (s *servers) end() (err error) {
	for i := len(s.running) - 1; i >= 0; i-- {
		cmd := s.running[i]
		err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM))
		_ = cmd.Wait() // by the signal
	}
	return err
}

// freePort is one that nobody uses. Mosquitto and Redis cannot choose one.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, err
}

func says(text string) func(string) bool {
	return func(line string) bool { return strings.Contains(line, text) }
}

// mosquitto starts one, with a store attached to it.
func (s *servers) mosquitto(options string) (endpoint, error) {
	port, err := freePort()
	if err != nil {
		return endpoint{}, err
	}
	e := endpoint{port: port}
	if err := s.broker(e, options); err != nil {
		return e, err
	}
	return e, s.attach(e)
}

// broker starts a Mosquitto. (With "user root" it stays who it is if started by root.)
func (s *servers) broker(e endpoint, options string) error {
	config := filepath.Join(s.dir, "mosquitto-"+e.port)
	text := fmt.Sprintf("user root\nlistener %s 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n%s", e.port, options)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	return s.start(says(" running"), "mosquitto", "-c", config)
}

func (s *servers) attach(e endpoint, flags ...string) error {
	return s.start(says("ready"), append([]string{s.sscli, "-u", e.url(), "serve", "--attach", "-o", "human"}, flags...)...)
}

// secure starts a Mosquitto with TLS, and a store, and returns the CA's file too.
func (s *servers) secure() (e endpoint, authority string, err error) {
	port, err := freePort()
	if err != nil {
		return e, "", err
	}
	e = endpoint{port, true}
	certificate, key := filepath.Join(s.dir, "cert.pem"), filepath.Join(s.dir, "key.pem")
	if err := writeCertificate(certificate, key); err != nil {
		return e, "", err
	}
	if err := s.broker(e, fmt.Sprintf("certfile %s\nkeyfile %s\n", certificate, key)); err != nil {
		return e, "", err
	}
	if err := s.attach(e, "--ca-file", certificate); err != nil {
		return e, "", err
	}
	set := s.command(s.sscli, "-u", e.url(), "--ca-file", certificate, "set", "k", "v")
	return e, certificate, set.Run()
}

// serve starts the emulator.
func (s *servers) serve() (endpoint, error) {
	port, err := freePort()
	if err != nil {
		return endpoint{}, err
	}
	return endpoint{port: port}, s.start(says("ready"), s.sscli, "serve", "--listen", "127.0.0.1:"+port, "-o", "human")
}

func (s *servers) redis() (endpoint, error) {
	port, err := freePort()
	if err != nil {
		return endpoint{}, err
	}
	return endpoint{port: port}, s.start(says("eady to accept connections"), "redis-server", "--port", port, "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", s.dir)
}

// hello builds a Go program that says a word, as sscli is built for a release.
func (s *servers) hello() (string, error) {
	source, program := filepath.Join(s.dir, "hello.go"), filepath.Join(s.dir, "hello")
	if err := os.WriteFile(source, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"), 0o600); err != nil {
		return "", err
	}
	build := s.command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build hello: %w: %s", err, out)
	}
	return program, nil
}

// roundTrip is a GET by mosquitto_rr, which ends with the answer.
func roundTrip(e endpoint, flags ...string) []string {
	host := "127.0.0.1"
	if e.secure {
		host = "localhost"
	}
	const answers = "clients/bench/answers"
	return append([]string{"mosquitto_rr", "-V", "5", "-h", host, "-p", e.port, "-q", "1", "-t", wire.RequestTopic, "-e", answers,
		"-D", "publish", "correlation-data", "0123456789abcdef", "-m", string(wire.AppendRequest(nil, wire.VerbGet, "k"))}, flags...)
}
