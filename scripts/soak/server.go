package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/sscli/sscli/emulator"
)

// serveWord is the argument that makes this program run the server. The server is a separate
// process, so that its memory is the broker's alone.
const serveWord = "serve"

func serve() {
	s, err := emulator.New(emulator.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); { // each line asks for the usage
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(m.HeapAlloc, m.StackInuse, runtime.NumGoroutine(), s.State().Connections)
	}
	s.Close() // an error does not matter: the process ends now
}

type server struct {
	address string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

func startServer() (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.Command(self, serveWord)}
	s.cmd.Stderr = os.Stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.out = bufio.NewScanner(out)
	if !s.out.Scan() {
		s.stop()
		return nil, fmt.Errorf("the server did not start: %v", s.out.Err())
	}
	s.address = s.out.Text()
	return s, nil
}

func (s *server) stop() {
	s.in.Close()
	_ = s.cmd.Wait() // an error does not matter: the clients decide the result
}

// usage is what the server uses after a garbage collection; heap and stacks are in bytes.
type usage struct{ heap, stacks, goroutines, connections int }

func (u usage) String() string {
	return fmt.Sprintf("heap %.1f MB, stacks %.1f MB, %d goroutines, %d connections", float64(u.heap)/1e6, float64(u.stacks)/1e6, u.goroutines, u.connections)
}

func (s *server) memory() (u usage, err error) {
	if _, err := fmt.Fprintln(s.in); err != nil {
		return u, err
	}
	if !s.out.Scan() {
		return u, fmt.Errorf("the server is gone: %v", s.out.Err())
	}
	_, err = fmt.Fscan(strings.NewReader(s.out.Text()), &u.heap, &u.stacks, &u.goroutines, &u.connections)
	return u, err
}

// settled waits until the server has about the heap of the usage before, and no more goroutines.
// After 10 s it gives up with an error.
func (s *server) settled(before usage) (after usage, err error) {
	const more = 4_000_000 // bytes; emptied maps and slices keep their capacity
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if after, err = s.memory(); err != nil {
			return after, err
		}
		if after.heap <= before.heap+more && after.goroutines <= before.goroutines {
			return after, nil
		}
		if time.Now().After(deadline) {
			return after, fmt.Errorf("memory does not return: before %s, after %s", before, after)
		}
	}
}
