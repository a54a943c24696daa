//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/internal/wire"
	"github.com/sscli/sscli/scripts/harness"
)

const (
	watcher = "bench-watcher" // client id of sscli
	flock   = 200             // notifications in one write of a flood
	ahead   = 20              // maximum number of flocks in flight to the reader

	// probe is sent until a program prints it. No measurement uses this number.
	probe = 1<<64 - 1
)

// watchRows compares `sscli watch` with mosquitto_sub, both on the emulator. The notifications come from a
// publisher in this process, on the topic that the store would use, so that both programs print the same
// messages and the emulator only forwards them. This process reads the output of the programs from pipes.
func watchRows(b *bench) []row {
	const keys = 10_000
	events := (b.n(100_000) + flock - 1) / flock * flock
	// flood returns the seconds and the seconds of CPU time that a program takes to print the events.
	flood := func(s *side, p printer) (seconds, cpu float64) {
		r := s.print(p, 1)
		begin := time.Now()
		s.flood(r, 1, events, ahead)
		seconds = time.Since(begin).Seconds()
		r.end()
		cpu = (r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime()).Seconds()
		fmt.Fprintf(os.Stderr, "  %-16s %.2f s, %.2f s of CPU\n", r.args[0], seconds, cpu)
		return seconds, cpu
	}
	perSecond := func(p func(*side) printer) func(*side) float64 {
		return func(s *side) float64 {
			seconds, _ := flood(s, p(s))
			return float64(events) / seconds
		}
	}
	paced := func(p func(*side) printer) func(*side) float64 {
		return func(s *side) float64 { return s.latency(p(s), b.n(4000)) }
	}
	peak := func(events int) func(*side) float64 {
		return func(s *side) float64 {
			r := s.print(s.watch(), keys)
			defer r.end()
			s.flood(r, keys, events, 5) // few in flight, so that the peak does not include a backlog
			return harness.Must(harness.Memory(r.cmd.Process.Pid, "VmHWM"))
		}
	}
	return []row{
		{number: "P7", what: "notifications a second fed by the emulator, `watch -o json` / `mosquitto_sub -F %j`",
			ours: perSecond((*side).watch), peer: perSecond((*side).subscribe), goal: least(8)},
		{number: "P7", what: "µs of CPU a notification, `watch -o json`", ours: func(s *side) float64 {
			_, cpu := flood(s, s.watch())
			return cpu * 1e6 / float64(events)
		}, goal: most(4)},
		{number: "P7", what: "µs from publisher to pipe, p50 at 1,000 notifications a second, `watch` / `mosquitto_sub`",
			ours: paced((*side).watch), peer: paced((*side).subscribe), goal: most(1.2)},
		// Keeping 100 bytes of each event would make the ratio 1.4 or more.
		{number: "P10", what: fmt.Sprintf("MiB at the peak of `watch` of %d keys, %d events / %d", keys, 3*events, events),
			ours: peak(3 * events), peer: peak(events), sizes: true, growth: true, goal: most(1.25), times: 0.2},
	}
}

// A printer is a program that prints a line for each notification.
type printer struct {
	args   []string
	before string // the text before the value in a line
	cmd    *exec.Cmd
	lines  *bufio.Reader
}

func (s *side) watch() printer {
	return printer{args: s.args(s.emulator(), "watch", "-i", watcher, "-o", "json", "--keys-from", "-"), before: `"value":"`}
}

func (s *side) subscribe() printer {
	return printer{args: []string{"mosquitto_sub", "-V", "5", "-h", "127.0.0.1", "-p", s.emulator().port, "-i", "bench-sub", "-q", "1",
		"-t", wire.NotifyFilter(watcher), "-F", "%j"}, before: `$16\r\n`} // the payload has the length of the value before it
}

// publisher returns the connection that sends the notifications.
func (s *side) publisher() *raw {
	return once(s, "publisher", func() *raw { return dialRaw(s.emulator(), "bench-publisher", "") })
}

func keyName(number int) string { return fmt.Sprintf("bench/%05d", number) }

// notification returns the PUBLISH with the notification of a SET whose value is number, as 16 hex
// digits.
func (s *side) notification(id uint16, key int, number uint64) []byte {
	clock := once(s, "clock", func() *wire.Clock { return wire.NewClock("bench", time.Now) })
	n := wire.Notification{Op: wire.OpSet, Value: fmt.Appendf(nil, "%016x", number), HasValue: true}
	return encoded(&packets.Publish{PacketID: id, QoS: 1, Topic: wire.NotifyTopic(watcher, keyName(key)), Payload: wire.AppendNotification(nil, n),
		Properties: &packets.Properties{User: []packets.User{{Key: wire.PropTimestamp, Value: harness.Must(clock.Tick()).String()}}}})
}

// publish sends one notification and waits for its PUBACK.
func (s *side) publish(key int, number uint64) {
	s.publisher().send(s.notification(1, key, number))
	s.publisher().await(1, 0, "")
}

// print starts a program for a number of keys and waits until it prints a notification of the
// last of them. By then sscli watches the other keys too.
func (s *side) print(p printer, keys int) *printer {
	var names strings.Builder
	for i := range keys {
		names.WriteString(keyName(i) + "\n")
	}
	p.cmd = exec.CommandContext(s.ctx, p.args[0], p.args[1:]...)
	p.cmd.Stdin, p.cmd.Stderr = strings.NewReader(names.String()), os.Stderr
	out := harness.Must(p.cmd.StdoutPipe())
	p.lines = bufio.NewReaderSize(out, 1<<16)
	harness.Check(p.cmd.Start())
	seen := make(chan struct{})
	published := inBackground(func() {
		for {
			s.publish(keys-1, probe)
			select {
			case <-time.After(20 * time.Millisecond):
			case <-seen:
				s.publish(keys-1, probe-1) // the reader below discards probes until this number
				return
			}
		}
	})
	err := harness.Try(func() { p.next() })
	close(seen)
	harness.Check(errors.Join(err, <-published))
	for p.next() == probe {
	}
	return &p
}

// inBackground calls f concurrently and sends its error.
func inBackground(f func()) <-chan error {
	done := make(chan error, 1)
	go func() { done <- harness.Try(f) }()
	return done
}

// next returns the number in the next line that has one.
func (p *printer) next() uint64 {
	for {
		line, err := p.lines.ReadSlice('\n')
		if err == io.EOF {
			err = fmt.Errorf("%s ended: %v", p.args[0], p.cmd.Wait())
		}
		harness.Check(err)
		_, rest, found := bytes.Cut(line, []byte(p.before))
		if found && len(rest) >= 16 { // not the initial event of a missing key
			return harness.Must(strconv.ParseUint(string(rest[:16]), 16, 64))
		}
	}
}

// end kills the program.
func (p *printer) end() {
	_ = p.cmd.Process.Kill() // it may have ended already
	_ = p.cmd.Wait()         // an error is expected after the signal
}

// flood publishes events of the keys in turn, as fast as the emulator and the program accept them, with at
// most ahead flocks in front of the reader, and reads the program's output.
func (s *side) flood(p *printer, keys, events, ahead int) {
	var flocks [][]byte
	for n := range events {
		if n%flock == 0 {
			flocks = append(flocks, nil)
		}
		last := &flocks[len(flocks)-1]
		*last = append(*last, s.notification(uint16(1+n%(2*flock)), n%keys, uint64(n))...) // two consecutive flocks have different packet ids
	}
	room := make(chan struct{}, ahead)
	published := inBackground(func() {
		for i, made := range flocks {
			select {
			case room <- struct{}{}:
			case <-s.ctx.Done():
				harness.Check(s.ctx.Err())
			}
			s.publisher().send(made)
			if i > 0 {
				s.publisher().await(flock, 0, "")
			}
		}
		s.publisher().await(flock, 0, "")
	})
	for n := range events {
		if got := p.next(); got != uint64(n) {
			harness.Check(fmt.Errorf("%s printed notification %d instead of %d", p.args[0], got, n))
		}
		if n%flock == flock-1 {
			<-room
		}
	}
	harness.Check(<-published)
}

// latency publishes n messages, one per millisecond, with the time as the value, and returns the median time
// until they are read, in microseconds.
func (s *side) latency(p printer, n int) float64 {
	const warmUp = 500
	r := s.print(p, 1)
	defer r.end()
	published := inBackground(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range warmUp + n {
			<-tick.C
			s.publish(0, uint64(time.Now().UnixNano()))
		}
	})
	var micros figures
	for i := range warmUp + n {
		if sent := r.next(); i >= warmUp {
			micros = append(micros, float64(time.Now().UnixNano()-int64(sent))/1e3)
		}
	}
	harness.Check(<-published)
	slices.Sort(micros)
	fmt.Fprintf(os.Stderr, "  %-16s µs p50 %.0f, p99 %.0f, max %.0f\n", r.args[0], micros.median(), micros[len(micros)*99/100], micros[len(micros)-1])
	return micros.median()
}
