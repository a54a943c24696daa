// Package viatest is a fake kubectl for tests of package via and of commands that use via. The fake knows one
// cluster, whose state is a directory of files.
//
// A test program that is started under the name kubectl must call [Main]. [Start] creates the directory, and
// the methods of [Cluster] control what kubectl does.
package viatest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sscli/sscli/internal/files"
)

// Variable is the name of the environment variable that holds the cluster's directory.
const Variable = "SSCLI_TEST_CLUSTER"

// deleted is the signal that makes a port-forward end as if its pod had been deleted.
const deleted = syscall.SIGALRM

// A Cluster is the state of a cluster, in the files of a directory:
//
//	broker     the address that forwards connect to
//	ca.crt     the broker's CA
//	token      the service-account token
//	calls      a line for each kubectl that was started: process id, arguments
//	WORD.fail  makes `kubectl WORD` print the file's content on standard error and exit with 1
//	WORD.hang  makes `kubectl WORD` hang
//	silent     if not empty, makes forwards accept connections and send nothing
type Cluster struct{ Dir string }

// Start creates a cluster whose broker has the given address. It puts a directory with a link from kubectl to
// this test program first in PATH.
func Start(t *testing.T, broker string) *Cluster {
	t.Helper()
	c := &Cluster{t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv(Variable, c.Dir)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector would delay each exit by 1 s
	c.Write(t, "broker", broker)
	c.Write(t, "token", "secret-token")
	return c
}

// Write replaces the content of a file of the cluster, atomically.
func (c *Cluster) Write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.Dir, name+".new"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	// The fake kubectl may be reading the file.
	err := files.RetryBusy(func() error { return os.Rename(filepath.Join(c.Dir, name+".new"), filepath.Join(c.Dir, name)) })
	if err != nil {
		t.Fatal(err)
	}
}

// Remove removes a file of the cluster.
func (c *Cluster) Remove(t *testing.T, name string) {
	t.Helper()
	if err := files.RetryBusy(func() error { return os.Remove(filepath.Join(c.Dir, name)) }); err != nil {
		t.Fatal(err)
	}
}

// Calls returns the kubectl processes whose first argument was word, in the order in which they were
// started: their process ids, and their lines in the file calls.
func (c *Cluster) Calls(word string) (pids []int, args []string) {
	text, _ := os.ReadFile(filepath.Join(c.Dir, "calls")) // the file is missing before the first call
	for line := range strings.Lines(string(text)) {
		var pid int
		var first string
		if _, err := fmt.Sscanf(line, "%d %s", &pid, &first); err == nil && first == word {
			pids = append(pids, pid)
			args = append(args, strings.TrimSpace(line))
		}
	}
	return pids, args
}

// Main runs the fake kubectl with the arguments of the process, and returns its exit code.
func Main() int {
	dir := os.Getenv(Variable)
	var words, flags []string
	for _, arg := range os.Args[1:] {
		if strings.HasPrefix(arg, "-") {
			flags = append(flags, arg)
		} else {
			words = append(words, arg)
		}
	}
	if err := run(dir, words, flags); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func run(dir string, words, flags []string) error {
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name)) // a missing file counts as an empty file
		return string(text)
	}
	calls, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(calls, os.Getpid(), strings.Join(words, " "), strings.Join(flags, " "))
	if err := errors.Join(err, calls.Close()); err != nil {
		return err
	}
	if why := read(words[0] + ".fail"); why != "" {
		return errors.New(strings.TrimSpace(why))
	}
	if _, err := os.Stat(filepath.Join(dir, words[0]+".hang")); err == nil {
		time.Sleep(time.Hour)
	}
	switch words[0] {
	case "version":
		fmt.Println(`{"clientVersion": {"gitVersion": "v1.31.4"}}`)
		return nil
	case "get":
		if words[1] == "/version" {
			fmt.Println(`{"gitVersion": "v1.31.9"}`)
			return nil
		}
		if !strings.Contains(words[1], "/configmaps/") {
			fmt.Println(words[1])
			return nil
		}
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"data": map[string]string{"ca.crt": read("ca.crt")}})
	case "create":
		fmt.Println(read("token"))
		return nil
	case "port-forward":
		return forward(read, strings.TrimPrefix(words[2], ":"))
	}
	return fmt.Errorf("error: unknown command %q", words[0])
}

// forward forwards connections until the process gets the signal deleted, as if the pod had been
// deleted.
func forward(read func(string) string, port string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, deleted)
	fmt.Printf("Forwarding from %s -> %s\n", l.Addr(), port)
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Printf("Handling connection for %s\n", port)
			go carry(nc, read)
		}
	}()
	<-gone
	return errors.New("error: lost connection to pod")
}

// carry copies the bytes of one connection in both directions.
func carry(nc net.Conn, read func(string) string) {
	defer nc.Close()
	if read("silent") != "" {
		time.Sleep(time.Hour)
	}
	broker, err := net.Dial("tcp", read("broker"))
	if err != nil {
		fmt.Fprintf(os.Stderr, "E1122 20:15:00.000000   12345 portforward.go:400] an error occurred forwarding 1 -> 2: error forwarding port 2 to pod x: %v\n", err)
		return
	}
	defer broker.Close()
	var both sync.WaitGroup
	for _, ends := range [2][2]net.Conn{{nc, broker}, {broker, nc}} {
		both.Go(func() {
			_, _ = io.Copy(ends[0], ends[1])
			_ = ends[0].(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
}

// DeletePod ends the newest forward as if its pod had been deleted.
func (c *Cluster) DeletePod(t *testing.T) { c.signal(t, deleted) }

// Kill kills the kubectl of the newest forward.
func (c *Cluster) Kill(t *testing.T) { c.signal(t, syscall.SIGKILL) }

func (c *Cluster) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	pids, _ := c.Calls("port-forward")
	p, err := os.FindProcess(pids[len(pids)-1])
	if err == nil {
		err = p.Signal(s)
	}
	if err != nil {
		t.Fatal(err)
	}
}
