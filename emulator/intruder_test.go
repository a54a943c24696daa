package emulator_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.golang/packets"

	ours "github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/redistest"
	"github.com/sscli/sscli/internal/testkit/testcert"
)

// In these tests, intruders try to exceed the rights of their login.

// clientCertificates returns the configuration of a server, and a function for that of a client with the
// given name.
func clientCertificates(t *testing.T) (server *tls.Config, client func(name string) *tls.Config) {
	t.Helper()
	ca := testcert.New(t, nil, testcert.CA("test CA"))
	server = ca.Server()
	server.ClientCAs, server.ClientAuth = ca.Pool(), tls.RequireAndVerifyClientCert
	return server, func(name string) *tls.Config {
		config := ca.Trust()
		config.Certificates = []tls.Certificate{testcert.New(t, ca, x509.Certificate{Subject: pkix.Name{CommonName: name}}).TLS()}
		return config
	}
}

func TestUserNameDoesNotOverrideCertificate(t *testing.T) {
	t.Parallel()
	server, certified := clientCertificates(t)
	s := emulator.Start(t, emulator.Options{TLS: server, Policy: parseRules(t, "admin:ReadWrite:*", "client:Read:public")})
	connect := func(name, id string, change ...func(*packets.Connect)) (*client, byte) {
		conn, err := tls.Dial("tcp", s.Addr().String(), certified(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		c := over(t, conn, id)
		return c, c.Hello(change...).ReasonCode
	}
	for _, change := range []func(*packets.Connect){func(*packets.Connect) {}, as("client"), as("admin")} {
		c, code := connect("client", "a", change)
		if code != 0 {
			t.Fatalf("CONNACK %#x", code)
		}
		c.Subscribe(c.responseTopic(), 1)
		c.do("SET k v", "-ERR not authorized")
		c.do("GET public", "$-1")
	}
	// A certificate without a name proves no name.
	c, code := connect("", "b", as("admin"))
	if code != 0 {
		t.Fatalf("CONNACK %#x", code)
	}
	c.ask("GET public")
	c.Expect("PUBACK 0x87")
}

// TestRedisLoginAsAnother: AUTH on the Redis port cannot change to another user's name either.
func TestRedisLoginAsAnother(t *testing.T) {
	t.Parallel()
	server, certified := clientCertificates(t)
	users := map[string]string{"admin": "secret", "client": "secret"}
	s := emulator.Start(t, emulator.Options{TLS: server, Redis: "127.0.0.1:0", CheckLogin: emulator.Passwords(users)})
	for name, want := range map[string]string{"client": "-WRONGPASS", "admin": "+OK", "": "+OK"} {
		conn, err := tls.Dial("tcp", redistest.Address(s.RedisURL()), certified(name))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(redistest.Request("AUTH", "admin", "secret")); err != nil {
			t.Fatal(err)
		}
		got, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("AUTH admin with the certificate of %q: got %q, %v, want %s", name, got, err, want)
		}
	}
}

// TestLongHandshake: no port reads a chain of certificates that is far longer than a real one, because its memory cannot be
// freed while the connection lasts.
func TestLongHandshake(t *testing.T) {
	t.Parallel()
	server, certified := clientCertificates(t)
	s := emulator.Start(t, emulator.Options{TLS: server, Redis: "127.0.0.1:0", WebSocket: "127.0.0.1:0"})
	web, err := url.Parse(s.WebSocketURL())
	if err != nil {
		t.Fatal(err)
	}
	for port, at := range map[string]struct{ address, request string }{
		"MQTT":      {s.Addr().String(), "\x10\x0e\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x01c"},
		"Redis":     {redistest.Address(s.RedisURL()), "PING\r\n"},
		"WebSocket": {web.Host, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
	} {
		for n, good := range map[int]bool{4: true, 200: false} {
			config := certified("client")
			chain := &config.Certificates[0]
			for range n {
				chain.Certificate = append(chain.Certificate, chain.Certificate[0])
			}
			conn, err := tls.Dial("tcp", at.address, config)
			if err == nil {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				_, _ = conn.Write([]byte(at.request)) // Read returns the error
				_, err = conn.Read(make([]byte, 1))
			}
			if (err == nil) != good {
				t.Errorf("%s: %d more certificates: %v", port, n, err)
			}
		}
	}
}

func TestUserNameWithoutLogin(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{
		Policy: emulator.PolicyFunc(func(a emulator.Access) bool { return a.Username == "" && a.On != "k" }),
	})
	c := connect(t, s, "a", as("admin"))
	c.do("GET public", "$-1")
	c.do("GET k", "-ERR not authorized")
}

// TestTokenOfAnotherUser: a client that presents another user's token becomes that user, and its session
// belongs to that user.
func TestTokenOfAnotherUser(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := emulator.Start(t, emulator.Options{CheckToken: i.Verify, Policy: parseRules(t, "ann:ReadWrite:a", "bob:ReadWrite:b")})
	token := func(user string) string {
		text, err := i.Issue(user, s.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	c := connect(t, s, "c", withToken(token("ann")))
	c.Send(&packets.Auth{ReasonCode: 0x19, Properties: &packets.Properties{AuthMethod: "K8S-SAT", AuthData: []byte(token("bob"))}})
	if auth, ok := c.Receive().Content.(*packets.Auth); !ok || auth.ReasonCode != 0 {
		t.Fatalf("got %v, want AUTH 0x00", auth)
	}
	c.do("GET a", "-ERR not authorized")
	c.do("GET b", "$-1")
	if ack := dial(t, s, "c").Hello(withToken(token("ann"))); ack.ReasonCode != 0x85 {
		t.Errorf("ann takes over from bob: CONNACK %#x", ack.ReasonCode)
	}
}

// TestRuleForUnprovenName: a rule that can never apply is an error.
func TestRuleForUnprovenName(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"ann:Read:*":                    `user "ann" can never log in`,
		"*:Read:{principal.username}/*": "no login with user names is configured",
		"*:Read:{principal.clientId}/*": "no login with user names is configured",
		"*:Read:*":                      "",
	} {
		s, err := emulator.New(emulator.Options{Policy: parseRules(t, rule)})
		if err == nil {
			s.Close()
		}
		ruleErr, ok := errors.AsType[*emulator.RuleError](err)
		if ok != (want != "") || ok && !strings.Contains(ruleErr.Error(), want) {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
}

// TestNobodyHasNoPrincipal: a placeholder in braces never stands for an empty name.
func TestNobodyHasNoPrincipal(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, trusting(parseRules(t, "*:ReadWrite:{principal.username}*", "*:ReadWrite:{principal.clientId}/*")))
	c := connect(t, s, "ann")
	c.do("GET k", "-ERR not authorized")
	c.do("GET ann/k", "-ERR not authorized")
	connect(t, s, "eve", as("bob")).do("GET eve/k", "-ERR not authorized")
}

// TestSessionOfAnotherUser: a client id does not give access to another user's session, whether its client is
// connected or not.
func TestSessionOfAnotherUser(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, trusting(nil))
	keep := func(p *packets.Connect) {
		remember(p)
		p.WillFlag, p.WillTopic, p.WillMessage, p.WillQOS = true, "wills", []byte("ann is gone"), 1
		p.WillProperties = &packets.Properties{}
	}
	heir := connect(t, s, "heir", as("heir"))
	heir.Subscribe("wills", 1)
	ann := connect(t, s, "a", as("ann"), keep)
	ann.Subscribe("news", 1)
	intrude := func(user string) {
		t.Helper()
		for _, clean := range []bool{true, false} {
			c := dial(t, s, "a")
			if ack := c.Hello(as(user), keep, func(p *packets.Connect) { p.CleanStart = clean }); ack.ReasonCode != 0x85 || ack.SessionPresent {
				t.Errorf("%q: CONNACK %#x, want 0x85", user, ack.ReasonCode)
			}
			c.Ended()
		}
	}
	intrude("bob")
	intrude("")
	ann.do("GET k", "$-1") // ann is still connected
	ann.Conn.Close()
	heir.Expect("PUBLISH wills q1 ann is gone")
	heir.Send(&packets.Publish{Topic: "news", QoS: 1, PacketID: heir.PacketID(), Payload: []byte("for ann"), Properties: &packets.Properties{}})
	heir.Expect("PUBACK 0x00")
	intrude("bob")
	again := dial(t, s, "a")
	if ack := again.Hello(as("ann"), keep); ack.ReasonCode != 0 || !ack.SessionPresent {
		t.Fatalf("CONNACK %#x, session present: %t", ack.ReasonCode, ack.SessionPresent)
	}
	again.Expect("PUBLISH news q1 for ann")
	again.Send(&packets.Disconnect{ReasonCode: 0, Properties: &packets.Properties{SessionExpiryInterval: pointer(uint32(0))}})
	again.Ended()
	await.State(t, s, func(st emulator.State) bool { return st.Clients == 1 })
	if ack := dial(t, s, "a").Hello(as("bob")); ack.ReasonCode != 0 || ack.SessionPresent {
		t.Errorf("after the session: CONNACK %#x", ack.ReasonCode)
	}
}

// TestForgedReplies: only the store publishes to the topics of clients.
func TestForgedReplies(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, trusting(parseRules(t, "*:ReadWrite:*")))
	ann := connect(t, s, "a", as("ann"))
	eve := connect(t, s, "eve", as("eve"))
	for _, topic := range []string{
		ann.responseTopic(), "clients/61/statestore/v1/x", "clients/a", "clients/eve/response",
		notifyPrefix + "61/command/notify/78", notifyPrefix + "657665/command/notify/78",
	} {
		for _, retain := range []bool{false, true} {
			eve.Send(&packets.Publish{Topic: topic, QoS: 1, Retain: retain, PacketID: eve.PacketID(), Payload: []byte("+OK"), Properties: &packets.Properties{}})
			eve.Expect("PUBACK 0x87")
		}
		will := func(p *packets.Connect) {
			p.WillFlag, p.WillTopic, p.WillMessage, p.WillProperties = true, topic, []byte("+OK"), &packets.Properties{}
		}
		if ack := dial(t, s, "w").Hello(as("eve"), will); ack.ReasonCode != 0x87 {
			t.Errorf("a will to %s: CONNACK %#x, want 0x87", topic, ack.ReasonCode)
		}
	}
	// The store does not publish there on a client's behalf either.
	for _, topic := range []string{ann.responseTopic(), "clients/61/statestore/v1/x", "$SYS/broker/version"} {
		p := eve.publication("GET", "k")
		p.Properties.ResponseTopic = topic
		eve.Send(p)
		eve.Expect("PUBACK 0x87")
	}
	ann.do("GET k", "$-1") // ann got nothing before
}

// TestTopicsOfSimilarIDs: a client whose id is the hexadecimal form of another client's id, or its first
// level, does not own the other's topics.
func TestTopicsOfSimilarIDs(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, trusting(parseRules(t, "*:ReadWrite:*")))
	for _, test := range []struct{ id, filter, want string }{
		{"61", hexResponse("a"), "SUBACK 135"}, // topic of client a
		{"61", "clients/61/#", "SUBACK 135"},
		{"61", "clients/61/+/v1/#", "SUBACK 135"},
		{"61", "clients/61/statestore/v1/x", "SUBACK 1"},
		{"61", "clients/61/services/#", "SUBACK 1"},
		{"61", "clients/3631/#", "SUBACK 135"}, // topic of client 3631
		{"61", hexResponse("61"), "SUBACK 1"},
		{"a/b", "clients/a/b/services/x", "SUBACK 135"}, // topic of client a
		{"a/b", hexResponse("a/b"), "SUBACK 1"},
		{"6G", "clients/6G/#", "SUBACK 1"},
	} {
		c := dial(t, s, test.id)
		c.Hello(as("eve"))
		c.Send(&packets.Subscribe{PacketID: c.PacketID(), Properties: &packets.Properties{}, Subscriptions: []packets.SubOptions{{Topic: test.filter, QoS: 1}}})
		if got := c.Describe(c.Receive()); got != test.want {
			t.Errorf("%s subscribes to %s: %s, want %s", test.id, test.filter, got, test.want)
		}
		c.Send(&packets.Disconnect{Properties: &packets.Properties{}})
		c.Ended()
	}
}

// TestGuessedPasswords: the more logins from an address fail, the slower its next logins are.
func TestGuessedPasswords(t *testing.T) {
	t.Parallel()
	checks := 0
	s := emulator.Start(t, emulator.Options{CheckLogin: func(string, []byte) bool { checks++; return false }})
	begin := time.Now()
	for range 8 {
		c := dial(t, s, "c")
		if ack := c.Hello(as("ann")); ack.ReasonCode != 0x86 {
			t.Fatalf("CONNACK %#x", ack.ReasonCode)
		}
	}
	if took := time.Since(begin); checks != 8 || took < 300*time.Millisecond {
		t.Errorf("%d guesses in %s", checks, took)
	}
}

// TestNoGuess: a login without a name and a password, such as that of a health check, is no attempt to guess one. However
// many are refused, no login from their address is delayed.
func TestNoGuess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, err := emulator.New(emulator.Options{InProcess: true, CheckLogin: emulator.Passwords(map[string]string{"ann": "secret"})})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		begin := time.Now()
		for i := range 21 {
			o, known := ours.Options{Address: "store:1883", Dial: store.Dial}, i == 20
			if known {
				o.Username, o.Password = "ann", ours.Secret("secret")
			}
			s, err := ours.New(o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err = s.Get(t.Context(), "a"); (err == nil) != known {
				t.Errorf("login %d: %v", i, err)
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("the logins waited %v", took)
		}
	})
}

// TestManyWithoutLogin: connections that don't log in are closed in favor of new ones; those that have logged
// in stay.
func TestManyWithoutLogin(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t)
	ann := connect(t, s, "ann")
	for range 400 {
		dial(t, s, "idle")
	}
	await.State(t, s, func(st emulator.State) bool { return st.Connections == 257 })
	ann.do("GET k", "$-1")
	connect(t, s, "bob").do("GET k", "$-1")
}

// TestRegistrationsAreCharged: KEYNOTIFY counts against the memory limit, and STOP returns the memory.
func TestRegistrationsAreCharged(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{Limits: emulator.Limits{MaxBytes: 1 << 20}})
	long := strings.Repeat("k", 20_000)
	fill := func() int {
		c := connect(t, s, "c")
		defer c.Conn.Close()
		for i := range 100 {
			c.ask("KEYNOTIFY " + long + strconv.Itoa(i))
			c.Expect("PUBACK 0x00")
			answer := c.Receive()
			c.Acknowledge(answer)
			if got := c.Describe(answer); got == "reply -ERR the quota has been exceeded" {
				c.do("KEYNOTIFY "+long+"0 STOP", "+OK")
				c.do("KEYNOTIFY "+long+strconv.Itoa(i), "+OK")
				return i
			} else if got != "reply +OK" {
				t.Fatal(got)
			}
		}
		t.Fatal("there is no limit")
		return 0
	}
	first := fill()
	await.State(t, s, func(st emulator.State) bool { return st.Connections == 0 && st.Registrations == 0 })
	if again := fill(); again != first || first > 50 {
		t.Errorf("%d registrations, and then %d", first, again)
	}
}

// TestDelayedAreCharged: requests and replies that are being delayed count against the memory limit until they
// are done, or lost in a restart.
func TestDelayedAreCharged(t *testing.T) {
	t.Parallel()
	server, certified := clientCertificates(t)
	leaf := certified("c")
	leaf.ServerName = "127.0.0.1"
	for name, config := range map[string]*tls.Config{"plain TCP": nil, "TLS, without direct writes": server} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := emulator.Start(t, emulator.Options{TLS: config, Limits: emulator.Limits{MaxBytes: 1 << 20}})
			testDelayedAreCharged(t, s, func() *client {
				c := dial(t, s, "c")
				if config != nil {
					c.Conn = tls.Client(c.Conn, leaf)
				}
				if ack := c.Hello(); ack.ReasonCode != 0 {
					t.Fatalf("CONNACK %#x", ack.ReasonCode)
				}
				c.Subscribe(c.responseTopic(), 1)
				return c
			})
		})
	}
}

func testDelayedAreCharged(t *testing.T, s *emulator.Server, connect func() *client) {
	long := strings.Repeat("k", 20_000)
	c := connect()
	c.do("SET "+long+" "+long, "+OK")
	limit := func(action emulator.Action, full func(puback string) bool) (n int) {
		t.Helper()
		s.Intercept(func(emulator.Request) emulator.Action { return action })
		for range 100 {
			c.ask("GET " + long)
			if full(c.Describe(c.Receive())) {
				return n
			}
			n++
		}
		t.Fatal("there is no limit")
		return 0
	}
	delayed := emulator.Action{Delay: time.Hour}
	refused := func(puback string) bool { return puback == "PUBACK 0x97" }
	first := limit(delayed, refused)
	if first == 0 || first > 50 {
		t.Errorf("%d requests were delayed", first)
	}
	s.FastForward(time.Hour)
	for range first {
		c.Expect("reply $20000\r\n" + long)
	}
	if again := limit(delayed, refused); again != first {
		t.Errorf("%d requests were delayed, and then %d", first, again)
	}
	if err := s.Restart(true); err != nil {
		t.Fatal(err)
	}
	s.FastForward(time.Hour)
	c = connect()
	lost := s.State().Undelivered
	replies := limit(emulator.Action{DelayReply: time.Hour}, func(string) bool { return s.State().Undelivered > lost })
	if replies == 0 || replies > 50 {
		t.Errorf("%d replies were delayed", replies)
	}
	s.FastForward(time.Hour)
	for range replies {
		c.Expect("reply $20000\r\n" + long)
	}
}

// TestStoredQuota: the store stays within its own limit, and writes that replace or free a value still
// succeed.
func TestStoredQuota(t *testing.T) {
	t.Parallel()
	s := emulator.Start(t, emulator.Options{MaxStored: 100_000})
	c := connect(t, s, "c")
	value := strings.Repeat("v", 60_000)
	const full = "-ERR the quota has been exceeded"
	c.do("SET a "+value, "+OK")
	c.do("SET b "+value, full)
	c.do("SET a "+value+value, full)
	c.do("SET a "+strings.ToUpper(value), "+OK")
	c.do("SET b small", "+OK")
	c.do("DEL a", ":1")
	c.do("SET c "+value, "+OK")
	for i := range 1000 {
		if reply, err := s.Set(strconv.Itoa(i), ""); err != nil {
			if i < 100 {
				t.Errorf("%d keys: %v, %v", i, reply, err)
			}
			return
		}
	}
	t.Error("empty values cost nothing")
}
