package emulator_test

import (
	"errors"
	"testing"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// TestRedisData: a Redis client learns of a change only once it is in the file, whether from the reply to a
// write, from a message or from a read.
func TestRedisData(t *testing.T) {
	t.Parallel()
	var disk stalled
	o := emulator.Options{Data: newData(t).Around(disk.commit), Redis: "127.0.0.1:0", RedisNotify: "KA"}
	s := serveData(t, o)
	address := redistest.Address(s.RedisURL())
	writer, reader, sub := redistest.Dial(t, "tcp", address), redistest.Dial(t, "tcp", address), redistest.Dial(t, "tcp", address)
	sub.Do(t, "SUBSCRIBE", "__keyspace@0__:k")
	disk.hold()
	if err := writer.Send("SET", "k", "v"); err != nil {
		t.Fatal(err)
	}
	await.State(t, s, func(st emulator.State) bool { return st.Keys == 1 })
	if err := reader.Send("GET", "k"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*redistest.Client{"the writer": writer, "a reader": reader, "a subscriber": sub} {
		if !c.Silent(t) {
			t.Errorf("%s heard of a change that is not on the disk", name)
		}
	}
	disk.release()
	for c, want := range map[*redistest.Client]string{
		writer: "+OK\r\n", reader: "$1\r\nv\r\n", sub: "*3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:k\r\n$3\r\nset\r\n",
	} {
		if got, err := c.Frame(); err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	disk.hold()
	disk.err = errors.New("input/output error")
	if err := writer.Send("SET", "k", "w"); err != nil {
		t.Fatal(err)
	}
	disk.release()
	if got := writer.Closed(t); len(got) > 0 {
		t.Errorf("after an error of the disk: %q", got)
	}
	<-s.Done()
	if err := s.Close(); err != nil {
		t.Log(err)
	}
	o.Data = o.Data.Around(nil)
	again := emulator.Start(t, o)
	redistest.Dial(t, "tcp", redistest.Address(again.RedisURL())).Expect(t, "$1\r\nv\r\n", "GET", "k")
}
