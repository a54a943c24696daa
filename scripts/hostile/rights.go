package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/sscli/sscli/scripts/harness"
)

// The files of policyFlags: users with the password "secret", and their rights.
const (
	policyUsers = "policy.users"
	policyFile  = "policy.json"
)

var policyFlags = []string{"--users", policyUsers, "--policy", policyFile}

// writePolicy writes the files of policyFlags. The users "user" and ann may do everything, bob may not connect, and eve may
// connect, publish and subscribe, and use keys, as the arguments list in JSON.
func writePolicy(dir, publish, subscribe, keys string) error {
	all := `[{"method": "Connect"}, {"method": "Publish", "topics": ["#"]}, {"method": "Subscribe", "topics": ["#"]}]`
	text := fmt.Sprintf(`[{"principals": {"usernames": ["user", "ann"]}, "brokerResources": %s, "stateStoreResources": [{"method": "ReadWrite", "keys": ["*"]}]},
{"principals": {"usernames": ["bob"]}, "brokerResources": [{"method": "Publish", "topics": ["#"]}], "stateStoreResources": [{"method": "ReadWrite", "keys": ["*"]}]},
{"principals": {"usernames": ["eve"]}, "brokerResources": [{"method": "Connect"}, {"method": "Publish", "topics": ["statestore/#", %s]},
 {"method": "Subscribe", "topics": ["clients/eve/#", "open/#", %s]}], "stateStoreResources": [%s]}]`, all, publish, subscribe, keys)
	users := ""
	for _, name := range []string{"user", "ann", "bob", "eve"} {
		users += name + ":" + password + "\n"
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, policyUsers), []byte(users), 0o600), os.WriteFile(filepath.Join(dir, policyFile), []byte(text), 0o600))
}

// rights returns the attacks on rights, and on the work to decide about them.
func rights() []attack {
	return []attack{
		{name: "what a client holds when its rights end", alone: true, flags: policyFlags, prepare: func(dir string) error {
			return writePolicy(dir, `"alarms/#"`, `"secret/#"`, `{"method": "ReadWrite", "keys": ["*"]}`)
		}, run: func(_ context.Context, t *target) (string, error) {
			return loseRights(t)
		}},
		{name: "commands of a client that may only write", flags: policyFlags, prepare: func(dir string) error {
			return writePolicy(dir, `"nothing"`, `"commands/#"`, `{"method": "Write", "keys": ["w*"]}, {"method": "Read", "keys": ["r*"]}`)
		}, run: func(_ context.Context, t *target) (string, error) {
			return askWithoutRights(t)
		}},
		{name: "200 SUBSCRIBEs of 5,000 filters that 1,500 rules refuse, logged with -v", flags: append([]string{"-v"}, policyFlags...), prepare: func(dir string) error {
			var filters strings.Builder
			for i := range 1500 {
				fmt.Fprintf(&filters, `"a/%d/{principal.clientId}/+/#", `, i)
			}
			return writePolicy(dir, `"nothing"`, filters.String()+`"nothing"`, `{"method": "Read", "keys": ["r*"]}`)
		}, run: func(_ context.Context, t *target) (string, error) {
			c := harness.Must(connectTo(t, connectOptions{id: "eve", user: "eve", password: password}))
			filters := make([]string, 5000)
			for i := range filters {
				filters[i] = fmt.Sprint("b/", i)
			}
			n := t.scale(200)
			for range n {
				want(c.subscribe(filters...))
			}
			return fmt.Sprintf("%d times SUBACK", n), nil
		}},
		{name: "40 guessers of a password beside an honest login, check --listen --users", prepare: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, policyUsers), []byte("ann:"+password+"\neve:other\n"), 0o600)
		}, run: guessBeside},
	}
}

// resumed connects eve again, tries to subscribe to a filter, and returns what she received within a second.
func (t *target) resumed(id, filter string) (got []string, err error) {
	c, err := connectTo(t, connectOptions{id: id, user: "eve", password: password, resume: true, expiry: 3600})
	if err != nil {
		return nil, err
	}
	if filter != "" {
		if _, err := c.Write(subscribePacket(&packets.Properties{}, filter)); err != nil {
			return nil, err
		}
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	for {
		p, err := packets.ReadPacket(c.in)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		switch content := p.Content.(type) {
		case *packets.Publish:
			got = append(got, content.Topic)
		case *packets.Suback:
			if content.Reasons[0] < 0x80 {
				got = append(got, "SUBACK for "+filter)
			}
		}
	}
}

// loseRights lets eve hold all that outlives a connection, and takes her rights.
func loseRights(t *target) (string, error) {
	ann := harness.Must(connectTo(t, connectOptions{id: "ann", user: "ann", password: password}))
	held := []string{"secret/#", "$share/g/secret/#"}
	var open *client
	for _, id := range []string{"connected", "away"} {
		for _, filter := range held {
			c := harness.Must(connectTo(t, connectOptions{id: id + filter[:1], user: "eve", password: password, expiry: 3600,
				will: []byte("will"), willTopic: "alarms/" + id, willDelay: map[string]uint32{"connected": 0, "away": 3}[id]}))
			harness.Check(c.subscribe(filter))
			if open = c; id == "away" {
				harness.Check(c.Close())
			}
		}
	}
	open = harness.Must(connectTo(t, connectOptions{id: "last", user: "eve", password: password}))
	publish := func(text string) {
		for i := range uint16(3) {
			p := packets.Publish{Topic: "secret/x", QoS: 1, PacketID: 1 + i, Payload: []byte(text), Properties: &packets.Properties{}}
			harness.Must(ann.Write(encoded(&p)))
			harness.Check(ann.await(packets.PUBACK))
		}
	}
	publish("before")
	var redis []*redisClient
	for _, words := range []string{"PSUBSCRIBE *", "MULTI", "WATCH k", "SUBSCRIBE news"} {
		c := harness.Must(connectToRedis(t))
		harness.Check(c.expect("+OK", "AUTH", "eve", password))
		harness.Must(io.WriteString(c, words+"\r\nSET k stolen\r\n"))
		harness.Must(c.in.ReadString('\n'))
		redis = append(redis, c)
	}
	if err := writePolicy(t.dir, `"nothing"`, `"nothing"`, `{"method": "Read", "keys": ["open*"]}`); err != nil {
		return "", err
	}
	if err := t.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return "", err
	}
	_ = open.SetReadDeadline(time.Now().Add(patience))
	if err := open.await(0); err != io.EOF { // no packet has this type
		return "", fmt.Errorf("the policy did not change: %w", err)
	}
	ann = harness.Must(connectTo(t, connectOptions{id: "ann", user: "ann", password: password}))
	harness.Check(ann.subscribe("alarms/#"))
	publish("after")
	for _, c := range redis {
		_ = c.SetDeadline(time.Now().Add(t.within(time.Second)))
		_, _ = io.WriteString(c, "EXEC\r\nPING\r\n") // fails if the connection is closed
		rest, err := io.ReadAll(c.in)
		if errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(rest), "PONG") {
			return "", breach("a Redis connection is left")
		}
	}
	for _, id := range []string{"connected", "away"} {
		for _, filter := range held {
			got, err := t.resumed(id+filter[:1], filter)
			if err != nil {
				return "", err
			}
			if len(got) > 0 {
				return "", breach(strings.Join(got, ", "))
			}
		}
	}
	harness.Must(ann.Write([]byte{packets.PINGREQ << 4, 0}))
	for {
		p, err := packets.ReadPacket(ann.in)
		if err != nil {
			return "", err
		}
		if alarm, ok := p.Content.(*packets.Publish); ok {
			return "", breach("the will on " + alarm.Topic)
		}
		if p.Type == packets.PINGRESP {
			return "nothing", nil
		}
	}
}

// askWithoutRights asks for what eve may not know, and sends it where she may not publish.
func askWithoutRights(t *target) (string, error) {
	w := harness.Must(connectToRedis(t))
	harness.Check(w.expect("+OK", "AUTH", "ann", password))
	for _, key := range []string{"w", "w2", "r", "secret"} {
		harness.Check(w.expect("+OK", "SET", key, "1"))
	}
	asked := 0
	for _, words := range []string{
		"GET w", "MGET r w", "STRLEN w", "GETRANGE w 0 1", "SUBSTR w 0 1", "GETBIT w 1", "EXISTS w", "TOUCH w", "TYPE w", "TTL w", "PTTL w", "EXPIRETIME w",
		"OBJECT ENCODING w", "OBJECT IDLETIME w", "MEMORY USAGE w", "GETSET w 2", "SET w 2 GET", "GETDEL w", "GETEX w", "APPEND w 2", "SETRANGE w 0 2",
		"SETRANGE w 0 \"\"", "SETBIT w 1 1", "INCR w", "DECRBY w 1", "INCRBYFLOAT w 1", "DELEX w IFEQ 1", "DELIFEQ w 1", "RENAME w w2", "COPY w w2 REPLACE", "WATCH w",
		"EXPIRE w 100 GT", "PEXPIRE w 100 LT", "SS.GET w", "SS.VERSION w", "FLUSHALL", "CONFIG SET notify-keyspace-events KEA",
		"PUBLISH __keyspace@0__:w set", "CLIENT KILL USER ann", "SET secret 2", "DEL secret",
	} {
		c := harness.Must(connectToRedis(t))
		harness.Check(c.expect("+OK", "AUTH", "eve", password))
		harness.Must(io.WriteString(c, words+"\r\n"))
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if line, err := c.in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "-NOPERM") && !strings.HasPrefix(line, "-ERR not authorized") {
			return "", breach(fmt.Sprintf("%s: %.40q, %v", words, line, err))
		}
		c.Close()
		asked++
	}
	c := harness.Must(connectToRedis(t))
	harness.Check(c.expect("+OK", "AUTH", "eve", password))
	for _, row := range []struct{ words, reply string }{
		{"DBSIZE", ":1"}, {"RANDOMKEY", "$1|r"}, {"KEYS *", "*1|$1|r"}, {"SCAN 0", "*2|$1|0|*1|$1|r"}, {"PUBSUB NUMSUB __keyspace@0__:secret", "*2|$21|__keyspace@0__:secret|:0"},
	} {
		harness.Must(io.WriteString(c, row.words+"\r\n"))
		for want := range strings.SplitSeq(row.reply, "|") {
			if line, err := c.in.ReadString('\n'); err != nil || strings.TrimSpace(line) != want {
				return "", breach(fmt.Sprintf("%s: %.40q", row.words, line))
			}
		}
		asked++
	}
	b := harness.Must(connectToRedis(t))
	if line := harness.Must(b.do(patience, []byte("AUTH"), []byte("bob"), []byte(password))); !strings.HasPrefix(line, "-NOPERM") {
		return "", breach("a login without Connect: " + line)
	}
	listener := harness.Must(connectTo(t, connectOptions{id: "ann", user: "ann", password: password}))
	harness.Check(listener.subscribe("commands/#"))
	eve := harness.Must(connectTo(t, connectOptions{id: "eve", user: "eve", password: password}))
	now := packets.User{Key: "__ts", Value: fmt.Sprintf("%d:0:eve", time.Now().UnixMilli())}
	for _, payload := range []string{"*3\r\n$3\r\nSET\r\n$1\r\nw\r\n$1\r\nx\r\n", "*2\r\n$3\r\nGET\r\n$1\r\nr\r\n"} {
		harness.Must(eve.Write(encoded(&packets.Publish{Topic: "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke", QoS: 1, PacketID: 1, Payload: []byte(payload),
			Properties: &packets.Properties{ResponseTopic: "commands/valve", CorrelationData: []byte("1"), User: []packets.User{now}}})))
		p := harness.Must(packets.ReadPacket(eve.in))
		if ack, ok := p.Content.(*packets.Puback); !ok || ack.ReasonCode != 0x87 {
			return "", breach("a response topic without Publish")
		}
		asked++
	}
	return fmt.Sprintf("%d refusals", asked), nil
}

// guessBeside guesses eve's password at the port of check --listen, while ann logs in.
func guessBeside(ctx context.Context, t *target) (string, error) {
	port := harness.Must(harness.FreePort())
	cmd := exec.CommandContext(ctx, t.sscli, "check", "k", "--listen", "127.0.0.1:"+port, "--users", policyUsers, "-u", "mqtt://"+t.mqtt)
	cmd.Dir = t.dir
	if err := (&harness.Bench{}).Start(cmd, "metrics"); err != nil {
		return "", err
	}
	defer harness.Stop(cmd)
	get := func(user, with string) (status int, err error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/metrics", nil)
		if err != nil {
			return 0, err
		}
		r.SetBasicAuth(user, with)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode, err
	}
	until := time.Now().Add(time.Duration(t.scale(10)) * time.Second)
	var guesses atomic.Int64
	go func() {
		_, _ = inParallelBy(ctx, 40, 1_000_000, func(i int) error {
			if time.Now().After(until) {
				return context.DeadlineExceeded
			}
			if status, err := get("eve", fmt.Sprint("guess", i)); err == nil && status == http.StatusUnauthorized {
				guesses.Add(1)
			}
			return nil
		})
	}()
	slowest, logins := time.Duration(0), 0
	for time.Now().Before(until) {
		begin := time.Now()
		status, err := get("ann", password)
		if err != nil {
			return "", err
		}
		if status != http.StatusOK {
			return "", breach(fmt.Sprintf("login %d of another user: %d", logins, status))
		}
		slowest, logins = max(slowest, time.Since(begin)), logins+1
	}
	if slowest > t.within(time.Second) {
		return "", breach(fmt.Sprintf("a login of another user takes %v", slowest.Round(time.Millisecond)))
	}
	return fmt.Sprintf("%d guesses, %d logins of another user, of at most %d ms", guesses.Load(), logins, slowest.Milliseconds()), nil
}
