package emulator_test

import (
	"bufio"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/testkit/redistest"
	"github.com/sscli/sscli/internal/wire"
)

// A row is a question in an example, in the form of sscli policy can, which has its own test with the same
// answers.
type row struct {
	line, user, id string
	attributes     map[string]string
	action         policy.Action
	allowed        bool
}

func parsePolicy(t testing.TB, file string) (*emulator.Policy, []row) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := emulator.ParsePolicy(filepath.Base(file), text)
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "#" || words[1] != "allow" && words[1] != "deny" {
			continue
		}
		r := row{line: strings.TrimSpace(line), allowed: words[1] == "allow", attributes: make(map[string]string)}
		for words = words[2:]; len(words) > 0; words = words[1:] {
			flag := words[0]
			if flag != "--connect" {
				words = words[1:]
			}
			switch flag {
			case "--user":
				r.user = words[0]
			case "--client-id":
				r.id = words[0]
			case "--attribute":
				name, value, _ := strings.Cut(words[0], "=")
				r.attributes[name] = value
			default:
				m, ok := policy.ParseMethod(strings.TrimPrefix(flag, "--"))
				if !ok {
					t.Fatalf("%s: %s", line, flag)
				}
				if r.action.Method = m; m != policy.Connect {
					r.action.On = words[0]
				}
			}
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no questions", file)
	}
	return p, rows
}

// TestPolicyExamples puts each question of the examples to a server, with clients that log in by password, by
// certificate and by token.
func TestPolicyExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../internal/policy/testdata/examples/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	server, certified := clientCertificates(t)
	issuer := newIssuer(t)
	for _, file := range files {
		p, rows := parsePolicy(t, file)
		options := func(o emulator.Options) emulator.Options {
			o.Policy = p
			return o
		}
		servers := map[string]*emulator.Server{
			"password":    emulator.Start(t, options(emulator.Options{CheckLogin: func(_ string, password []byte) bool { return string(password) == "secret" }})),
			"certificate": emulator.Start(t, options(emulator.Options{TLS: server})),
			"token":       emulator.Start(t, options(emulator.Options{CheckToken: issuer.Verify})),
		}
		for _, r := range rows {
			current := *p
			current.Attributes = emulator.Attributes{r.user: r.attributes}
			for login, s := range servers {
				s.SetPolicy(&current)
				var conn net.Conn
				var change func(*packets.Connect)
				switch login {
				case "password":
					change = func(c *packets.Connect) {
						c.UsernameFlag, c.Username, c.PasswordFlag, c.Password = true, r.user, true, []byte("secret")
					}
				case "certificate":
					change = func(*packets.Connect) {}
					conn, err = tls.Dial("tcp", s.Addr().String(), certified(r.user))
				case "token":
					token, err := issuer.Issue(r.user, s.Now(), time.Hour)
					if err != nil {
						t.Fatal(err)
					}
					change = withToken(token)
				}
				if err != nil {
					t.Fatal(err)
				}
				c := over(t, conn, r.id)
				if conn == nil {
					c = dial(t, s, r.id)
				}
				if got := askLive(c, r.action, change); got != r.allowed {
					t.Errorf("%s, %s by %s: %t", filepath.Base(file), r.line, login, got)
				}
				c.Conn.Close()
			}
		}
	}
}

// askLive reports whether a server allows an action to a client after its login.
func askLive(c *client, a policy.Action, login func(*packets.Connect)) bool {
	c.T.Helper()
	switch code := c.Hello(login).ReasonCode; {
	case code == 0x87:
		return false
	case code != 0:
		c.T.Fatalf("CONNACK %#x", code)
	}
	subscribe := func(filter string) bool {
		c.Send(&packets.Subscribe{PacketID: c.PacketID(), Properties: &packets.Properties{}, Subscriptions: []packets.SubOptions{{Topic: filter, QoS: 1}}})
		got := c.Describe(c.Receive())
		if got != "SUBACK 1" && got != "SUBACK 135" {
			c.T.Fatal(got)
		}
		return got == "SUBACK 1"
	}
	switch a.Method {
	case policy.Connect:
		return true
	case policy.Subscribe:
		return subscribe(a.On)
	case policy.Publish:
		c.Send(&packets.Publish{Topic: a.On, QoS: 1, PacketID: c.PacketID(), Payload: []byte("x"), Properties: &packets.Properties{}})
		return c.Describe(c.Receive()) != "PUBACK 0x87"
	}
	words := []string{"GET", a.On}
	if a.Method == policy.Write {
		words = []string{"DEL", a.On}
	}
	request := c.publication(words...)
	request.Properties.ResponseTopic = wire.HexResponseTopic(c.ID)
	if !subscribe(request.Properties.ResponseTopic) {
		c.T.Fatal("no subscription for replies")
	}
	c.Send(request)
	var got []string
	for range 2 {
		p := c.Receive()
		got = append(got, c.Describe(p))
		c.Acknowledge(p)
	}
	return !strings.Contains(strings.Join(got, "\n"), "-ERR not authorized")
}

// TestCertificateAttributes: a certificate has the attributes of its subject, as openssl prints the subject.
func TestCertificateAttributes(t *testing.T) {
	t.Parallel()
	p, err := emulator.ParsePolicy("p", []byte(`[{"principals": {"attributes": [{"room": "7"}]}, "brokerResources": [{"method": "Connect"}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	if p.Attributes, err = emulator.ParseAttributes("a", []byte(`{"CN = \"Fan, Inc. \\C3\\BC\"": {"room": "7"}}`)); err != nil {
		t.Fatal(err)
	}
	server, certified := clientCertificates(t)
	s := emulator.Start(t, emulator.Options{TLS: server, Policy: p})
	for name, want := range map[string]byte{"Fan, Inc. ü": 0, "Fan": 0x87} {
		conn, err := tls.Dial("tcp", s.Addr().String(), certified(name))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if code := (over(t, conn, "a")).Hello().ReasonCode; code != want {
			t.Errorf("%s: CONNACK %#x", name, code)
		}
	}
}

const onePolicy = `[{"principals": {"usernames": ["ann"]}, "brokerResources": [{"method": "Connect"}, {"method": "Publish", "topics": ["#"]},
  {"method": "Subscribe", "topics": ["#"]}], "stateStoreResources": [{"method": "ReadWrite", "keys": ["a*"]}]}]`

// TestSetPolicy: new rules disconnect all clients and apply at once, also on the Redis port.
func TestSetPolicy(t *testing.T) {
	t.Parallel()
	parse := func(text string) *emulator.Policy {
		p, err := emulator.ParsePolicy("p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	o := emulator.Options{Policy: parse(onePolicy), CheckLogin: emulator.Passwords(map[string]string{"ann": "secret"})}
	s, redis := startWithRedis(t, o)
	login := func(p *packets.Connect) {
		p.UsernameFlag, p.Username, p.PasswordFlag, p.Password = true, "ann", true, []byte("secret")
	}
	redis.Expect(t, "+OK\r\n", "AUTH", "ann", "secret")
	redis.Expect(t, "+OK\r\n", "SET", "a1", "1")
	redis.Expect(t, "-ERR not authorized\r\n", "SET", "b1", "1")
	ann := connect(t, s, "c", login)
	ann.do("SET a 1", "+OK")
	ann.do("SET b 1", "-ERR not authorized")
	s.SetPolicy(parse(strings.ReplaceAll(onePolicy, "a*", "b*")))
	ann.Expect("DISCONNECT 0x98")
	ann = connect(t, s, "c", login)
	ann.do("SET b 1", "+OK")
	ann.do("SET a 1", "-ERR not authorized")
	if frame, err := redis.Frame(); err == nil {
		t.Errorf("a Redis client stays connected: %s", frame)
	}
	redis = redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
	redis.Expect(t, "+OK\r\n", "AUTH", "ann", "secret")
	redis.Expect(t, "-ERR not authorized\r\n", "SET", "a1", "1")
	redis.Expect(t, "+OK\r\n", "SET", "b1", "1")
	s.SetPolicy(parse(strings.ReplaceAll(onePolicy, "ann", "bob")))
	ann.Expect("DISCONNECT 0x98")
	if code := dial(t, s, "c").Hello(login).ReasonCode; code != 0x87 {
		t.Errorf("CONNACK %#x", code)
	}
	s.SetPolicy(emulator.PolicyFunc(func(emulator.Access) bool { return true }))
	ann = connect(t, s, "c", login)
	s.SetPolicy(nil) // has no effect
	ann.do("SET c 1", "+OK")
}

// TestPolicyWithoutLogin: without logins everything is allowed, as on the broker of Azure IoT Operations.
func TestPolicyWithoutLogin(t *testing.T) {
	t.Parallel()
	p, err := emulator.ParsePolicy("p", []byte(onePolicy))
	if err != nil {
		t.Fatal(err)
	}
	connect(t, emulator.Start(t, emulator.Options{Policy: p}), "c").do("SET b 1", "+OK")
}

// TestRedisCertificateAttributes: the rules for a Redis client know the attributes of its certificate, as for a client of
// MQTT.
func TestRedisCertificateAttributes(t *testing.T) {
	t.Parallel()
	p, err := emulator.ParsePolicy("p", []byte(strings.ReplaceAll(onePolicy[:len(onePolicy)-1], `"usernames": ["ann"]`, `"attributes": [{"role": "fan"}]`)+
		`, {"principals": {"usernames": ["other"]}, "brokerResources": [{"method": "Connect"}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	if p.Attributes, err = emulator.ParseAttributes("a", []byte(`{"CN = smart-fan": {role: fan}}`)); err != nil {
		t.Fatal(err)
	}
	server, certified := clientCertificates(t)
	logins := map[string]emulator.Options{
		"certificate": {TLS: server, Policy: p, Redis: "127.0.0.1:0"},
		"password":    {TLS: server, Policy: p, Redis: "127.0.0.1:0", CheckLogin: func(string, []byte) bool { return true }},
	}
	for login, o := range logins {
		s := emulator.Start(t, o)
		for name, want := range map[string]string{"smart-fan": "+OK\r\n", "other": "-ERR not authorized\r\n", "nobody": "-NOPERM this user has no permissions to connect\r\n"} {
			conn, err := tls.Dial("tcp", redistest.Address(s.RedisURL()), certified(name))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			c := &redistest.Client{Conn: conn, Reader: bufio.NewReader(conn)}
			command := []string{"SET", "a", "1"}
			switch {
			case login == "certificate":
			case name == "nobody":
				command = []string{"AUTH", name, "any"}
			default:
				c.Expect(t, "+OK\r\n", "AUTH", name, "any")
			}
			c.Expect(t, want, command...)
		}
	}
}

// TestRedisRuleIsObserved: a Redis command with one key is observed with the rule that decided.
func TestRedisRuleIsObserved(t *testing.T) {
	t.Parallel()
	const rules = `[{"principals": {"usernames": ["ann"]}, "brokerResources": [{"method": "Connect"}], "stateStoreResources": [{"method": "ReadWrite", "keys": ["a*"]}, {"method": "Write", "keys": ["w"]}]}]`
	p, err := emulator.ParsePolicy("p", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []string
	_, c := startWithRedis(t, emulator.Options{Policy: p, CheckLogin: func(string, []byte) bool { return true }, Observe: func(e emulator.Event) {
		mu.Lock()
		defer mu.Unlock()
		if len(e.Keys) > 0 {
			got = append(got, e.Verb+" "+strings.Join(e.Keys, " ")+": "+e.Rule)
		}
	}})
	c.Expect(t, "-NOAUTH Authentication required.\r\n", "GET", "a")
	c.Expect(t, "+OK\r\n", "AUTH", "ann", "any")
	c.Expect(t, "+OK\r\n", "SET", "a", "1")
	c.Expect(t, "$1\r\n1\r\n", "GET", "a")
	c.Expect(t, "-ERR not authorized\r\n", "GET", "b")
	c.Expect(t, "+OK\r\n", "SET", "w", "1")
	c.Expect(t, "-ERR not authorized\r\n", "GETSET", "w", "1")
	c.Expect(t, "-ERR not authorized\r\n", "MSET", "a", "1", "b", "1")
	const first, second = "p:1 rules[0].stateStoreResources[0]: ", "p:1 rules[0].stateStoreResources[1]: "
	want := []string{
		"get a: ", "set a: " + first + "ReadWrite a*", "get a: " + first + "ReadWrite a*", "get b: nearest: " + first + "it allows Read only on a*",
		"set w: " + second + "Write w", "getset w: nearest: " + second + "it allows Write, not Read", "mset a b: ",
	}
	c.Expect(t, "+PONG\r\n", "PING")
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}
