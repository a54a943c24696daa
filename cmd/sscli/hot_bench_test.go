//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/help"
	"github.com/sscli/sscli/cmd/sscli/internal/terminal"
	"github.com/sscli/sscli/internal/wire"
)

// BenchmarkBatch measures the whole path of a batch line, from the input to the printed result. The other end answers
// without looking at the request, so nearly all of the time is spent in sscli. On a busy machine only cpu-ns/op is
// meaningful.
//
//	go test ./cmd/sscli -run '^$' -bench 'Batch|Watch' -benchmem -cpuprofile cpu.out
func BenchmarkBatch(b *testing.B) {
	for _, bench := range []struct{ name, line, args string }{
		{"set", "set key%07d %0100d\n", ""},
		{"get", "get key%07d # %d\n", ""},
		{"json", "set key%07d %0100d\n", "-o json"},
		{"load", `{"op":"get","key":"key%07d","found":true,"value":"%0100d"}` + "\n", "--load"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			address := canned(b, 0)
			var lines bytes.Buffer
			for n := range b.N {
				fmt.Fprintf(&lines, bench.line, n, n)
			}
			b.ReportAllocs()
			b.ResetTimer()
			runHot(b, &lines, address, "batch - -q --inflight 256 "+bench.args)
		})
	}
}

// BenchmarkWatch measures the whole path of a notification, from the network to the printed event.
func BenchmarkWatch(b *testing.B) {
	for _, output := range []string{"json", "raw"} {
		b.Run(output, func(b *testing.B) {
			address := canned(b, b.N)
			b.ReportAllocs()
			b.ResetTimer()
			runHot(b, nil, address, fmt.Sprintf("watch k -q -n %d --buffer %d -o %s", b.N, b.N+1, output))
		})
	}
}

// runHot runs sscli in this process, with stdin as its standard input.
func runHot(b *testing.B, stdin io.Reader, address, args string) {
	b.Helper()
	out, stdout, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	var reader sync.WaitGroup
	reader.Go(func() { io.Copy(io.Discard, out) })
	defer func() {
		stdout.Close()
		reader.Wait()
		out.Close()
	}()
	stderr, err := os.Create(filepath.Join(b.TempDir(), "stderr"))
	if err != nil {
		b.Fatal(err)
	}
	defer stderr.Close()
	before := cpuTime(b)
	a := &app.App{Commands: table(), Topics: help.Topics, Stdin: stdin, Stdout: &terminal.Output{File: stdout, Ended: b.Context()}, Stderr: &terminal.Output{File: stderr}, Env: func(string) (string, bool) { return "", false }}
	err = runLine(b.Context(), a, "sscli", append(strings.Fields(args), "-u", "mqtt://"+address))
	if code := a.Report(err); code != 0 {
		text, _ := os.ReadFile(stderr.Name())
		b.Fatalf("exit code %d: %s", code, text)
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// cpuTime returns the CPU time of this process in nanoseconds.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// canned listens for one client. It answers every request with OK, and a GET with a value. After the first GET it sends
// the given number of notifications.
func canned(b *testing.B, notifications int) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	b.Cleanup(func() {
		l.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		c := cannedClient{in: bufio.NewReaderSize(conn, 64<<10), out: bufio.NewWriterSize(conn, 64<<10), notifications: notifications}
		for c.answer() == nil {
		}
	}()
	return l.Addr().String()
}

type cannedClient struct {
	in            *bufio.Reader
	out           *bufio.Writer
	notifications int
	id            string
	ok, value     []byte // the prepared replies
	body          []byte // of the current packet; reused
}

// answer reads one packet and answers it.
func (c *cannedClient) answer() error {
	if c.in.Buffered() == 0 {
		if err := c.out.Flush(); err != nil {
			return err
		}
	}
	kind, err := c.in.ReadByte()
	if err != nil {
		return err
	}
	n, err := binary.ReadUvarint(c.in)
	if err != nil {
		return err
	}
	c.body = append(c.body[:0], make([]byte, n)...)
	if _, err := io.ReadFull(c.in, c.body); err != nil {
		return err
	}
	body := c.body
	switch kind >> 4 {
	case packets.CONNECT:
		// The fields are: protocol name, level, flags, keep-alive, properties, client ID.
		id := body[11+int(body[10]):]
		c.id = string(id[2 : 2+int(id[1])])
		c.ok = publication(wire.ResponseTopic(c.id), make([]byte, 16), "+OK\r\n")
		c.value = publication(wire.ResponseTopic(c.id), make([]byte, 16), "$100\r\n"+strings.Repeat("v", 100)+"\r\n")
		c.out.WriteString("\x20\x03\x00\x00\x00")
	case packets.SUBSCRIBE:
		filters := bytes.Count(body, []byte("clients/"))
		c.out.Write([]byte{0x90, byte(3 + filters), body[0], body[1], 0})
		c.out.WriteString(strings.Repeat("\x01", filters))
	case packets.PUBLISH:
		c.request(body)
	case packets.DISCONNECT:
		return io.EOF
	}
	return nil
}

// request answers a request with a PUBACK and a reply.
func (c *cannedClient) request(body []byte) {
	topic := 2 + len(wire.RequestTopic)
	packet := body[topic : topic+2]
	correlation := body[bytes.Index(body, []byte("\x09\x00\x10"))+3:][:16]
	c.out.Write([]byte{0x40, 2, packet[0], packet[1]})
	get := bytes.Contains(body, []byte("\r\n$3\r\nGET\r\n"))
	reply := c.ok
	if get {
		reply = c.value
	}
	copy(reply[bytes.Index(reply, []byte("\x09\x00\x10"))+3:], correlation)
	c.out.Write(reply)
	if get && c.notifications > 0 {
		c.notify()
	}
}

// notify sends the notifications in batches. At most two batches are without a PUBACK at any time.
func (c *cannedClient) notify() {
	const flock = 256
	acks := flock * len("\x40\x02\x00\x01")
	one := publication(wire.NotifyTopic(c.id, "k"), nil, "*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n$10\r\n0000000000\r\n")
	version := bytes.Index(one, []byte("001730")) + len("001730")
	for n := range c.notifications {
		for i, rest := 8, n+1; rest > 0; i, rest = i-1, rest/10 {
			one[version+i] = '0' + byte(rest%10)
		}
		c.out.Write(one)
		if n%flock == flock-1 {
			c.out.Flush()
			if n > flock {
				c.in.Discard(acks)
			}
		}
	}
}

// publication returns a PUBLISH packet from the store.
func publication(topic string, correlation []byte, payload string) []byte {
	var props []byte
	if correlation != nil {
		props = append(append(props, 9, 0, 16), correlation...)
	}
	for _, p := range [...][2]string{{wire.PropTimestamp, "001730000000000:00000:StateStore"}, {wire.PropStatus, "200"}, {wire.PropProtocol, "1.0"}} {
		props = append(append(props, 0x26, 0, byte(len(p[0]))), p[0]...)
		props = append(append(props, 0, byte(len(p[1]))), p[1]...)
	}
	size := binary.AppendUvarint(nil, uint64(len(props)))
	p := binary.AppendUvarint([]byte{0x32}, uint64(2+len(topic)+2+len(size)+len(props)+len(payload)))
	p = append(binary.BigEndian.AppendUint16(p, uint16(len(topic))), topic...)
	return append(append(append(append(p, 0, 1), size...), props...), payload...)
}
