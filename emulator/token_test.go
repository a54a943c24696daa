package emulator_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/golang-jwt/jwt/v5"
	"github.com/gorilla/websocket"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

const account = "system:serviceaccount:default:sscli"

func newIssuer(t testing.TB) *emulator.Issuer {
	t.Helper()
	i, err := emulator.NewIssuer("aio-internal")
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func issue(t testing.TB, i *emulator.Issuer, now time.Time, life time.Duration) string {
	t.Helper()
	token, err := i.Issue(account, now, life)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestIssuer(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1696374425, 0)
	for name, key := range map[string]crypto.Signer{"ES256": newIssuer(t).Key, "RS256": rsaKey, "EdDSA": edKey} {
		i := &emulator.Issuer{Key: key, Audience: "aio-internal"}
		token := issue(t, i, now, time.Hour)
		head, err := base64.RawURLEncoding.DecodeString(token[:strings.IndexByte(token, '.')])
		if err != nil || !strings.Contains(string(head), name) {
			t.Errorf("%s: header %s, %v", name, head, err)
		}
		login, err := i.Verify([]byte(token), now)
		if err != nil || login.User != account || !login.Expires.Equal(now.Add(time.Hour)) {
			t.Errorf("%s: %+v, %v", name, login, err)
		}
		for _, c := range []struct {
			issuer *emulator.Issuer
			now    time.Time
			token  string
			want   string
		}{
			{i, now.Add(time.Hour), token, "expired at 2023-10-04T00:07:05Z"},
			{i, now.Add(-time.Second), token, "not valid before 2023-10-03T23:07:05Z"},
			{i, now, issue(t, i, now, -time.Hour), "expired at"},
			{&emulator.Issuer{Key: key, Audience: "other"}, now, token, "audience"},
			{newIssuer(t), now, issue(t, newIssuer(t), now, time.Hour), "signature"},
			{i, now, token[:len(token)-4], "signature"},
			{i, now, strings.TrimRight(token, "."), ""},
			{i, now, "good", "segments"},
			{i, now, "", "segments"},
			{i, now, "e30.e30.", "signing method"},
			{i, now, "!.e30.", "header"},
		} {
			if c.want == "" {
				continue
			}
			if _, err := c.issuer.Verify([]byte(c.token), c.now); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
		}
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&emulator.Issuer{Key: p384}).Issue("", now, 0); err == nil || !strings.Contains(err.Error(), "P-256") {
		t.Errorf("P-384: %v", err)
	}
}

// TestUnsignedToken: the key determines the algorithm, not the token.
func TestUnsignedToken(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	now := time.Now()
	token := issue(t, i, now, time.Hour)
	for _, algorithm := range []string{"none", "None", "HS256", "RS256", ""} {
		head, err := json.Marshal(map[string]string{"alg": algorithm})
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(token, ".")
		if _, err := i.Verify([]byte(base64.RawURLEncoding.EncodeToString(head)+"."+rest), now); err == nil {
			t.Errorf("a token with the algorithm %q is accepted", algorithm)
		}
	}
}

// FuzzIssuer: a token whose header or claims were changed is refused.
func FuzzIssuer(f *testing.F) {
	i := newIssuer(f)
	now := time.Unix(1696374425, 0)
	token := issue(f, i, now, time.Hour)
	whole := token[:strings.LastIndexByte(token, '.')]
	f.Add(0, byte(1), []byte("e30.e30.c2ln"))
	f.Add(len(token)-1, byte(1), []byte(nil))
	f.Fuzz(func(t *testing.T, at int, flip byte, other []byte) {
		changed := []byte(token)
		if at >= 0 && at < len(changed) {
			changed[at] ^= flip
		}
		for _, candidate := range [][]byte{changed, other} {
			if _, err := i.Verify(candidate, now); err == nil && !strings.HasPrefix(string(candidate), whole+".") {
				t.Errorf("%q is accepted", candidate)
			} else if err != nil && string(candidate) == token {
				t.Errorf("the token itself is refused: %v", err)
			}
		}
	})
}

func withToken(token string) func(*packets.Connect) {
	return func(p *packets.Connect) { p.Properties.AuthMethod, p.Properties.AuthData = "K8S-SAT", []byte(token) }
}

// TestTokenEnds: when a token expires, its connection is closed without a DISCONNECT, unless the client has
// presented another token.
func TestTokenEnds(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := emulator.Start(t, emulator.Options{CheckToken: i.Verify, Policy: parseRules(t, account+":ReadWrite:*")})
	token := issue(t, i, s.Now(), time.Hour)
	one, two := connect(t, s, "one", withToken(token)), connect(t, s, "two", withToken(token))
	one.do("SET k v", "+OK") // the rule names the token's subject
	s.FastForward(59 * time.Minute)
	fresh := issue(t, i, s.Now(), time.Hour)
	two.Send(&packets.Auth{ReasonCode: 0x19, Properties: &packets.Properties{AuthMethod: "K8S-SAT", AuthData: []byte(fresh)}})
	if auth, ok := two.Receive().Content.(*packets.Auth); !ok || auth.ReasonCode != 0 {
		t.Fatalf("got %v, want AUTH 0x00", auth)
	}
	s.FastForward(2 * time.Minute)
	one.Ended()
	two.do("GET k", "$1\r\nv")
	if ack := dial(t, s, "three").Hello(withToken(token)); ack.ReasonCode != 0x87 {
		t.Errorf("CONNACK %#x with a token that has ended", ack.ReasonCode)
	}
	two.Send(&packets.Auth{ReasonCode: 0x19, Properties: &packets.Properties{AuthMethod: "K8S-SAT", AuthData: []byte(token)}})
	two.Expect("DISCONNECT 0x87")
	two.Ended()
	s.FastForward(2 * time.Hour)
	await.State(t, s, func(st emulator.State) bool { return st.Connections == 0 })
}

// TestTokenEndsEverywhere: when a token expires, everything that its client opened ends on every port: the
// connection, even if the client only listens, and requests that have not been processed yet.
func TestTokenEndsEverywhere(t *testing.T) {
	i := newIssuer(t)
	s := emulator.Start(t, emulator.Options{CheckToken: i.Verify, Redis: "127.0.0.1:0", RedisNotify: "KEA", WebSocket: "127.0.0.1:0", Latency: 4 * time.Hour})
	token := issue(t, i, s.Now(), time.Hour)
	login := func() *redistest.Client {
		c := redistest.Dial(t, "tcp", redistest.Address(s.RedisURL()))
		c.Expect(t, "+OK\r\n", "AUTH", token)
		return c
	}
	idle, queued, subscribed, watching, out, renewed := login(), login(), login(), login(), login(), login()
	queued.Expect(t, "+OK\r\n", "MULTI")
	queued.Expect(t, "+QUEUED\r\n", "SET", "late", "v")
	subscribed.Do(t, "SUBSCRIBE", "news")
	out.Expect(t, "+RESET\r\n", "RESET")
	renewed.Expect(t, "+OK\r\n", "AUTH", issue(t, i, s.Now(), 24*time.Hour))
	renewed.Expect(t, "+OK\r\n", "SET", "brief", "v", "PX", "5400000") // expires after the tokens, in the same FastForward
	watching.Do(t, "SUBSCRIBE", "__keyspace@0__:brief")

	ws, _, err := (&websocket.Dialer{Subprotocols: []string{"mqtt"}}).DialContext(t.Context(), s.WebSocketURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	web := over(t, ws.NetConn(), "web")
	var packet bytes.Buffer
	hello := &packets.Connect{ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: "web", CleanStart: true, Properties: &packets.Properties{}}
	withToken(token)(hello)
	if _, err := hello.WriteTo(&packet); err != nil {
		t.Fatal(err)
	}
	if err := ws.WriteMessage(websocket.BinaryMessage, packet.Bytes()); err != nil {
		t.Fatal(err)
	}
	if _, p, err := ws.ReadMessage(); err != nil || p[3] != 0 {
		t.Fatalf("CONNACK % x, %v", p, err)
	}

	mqtt := connect(t, s, "mqtt", withToken(token))
	mqtt.Send(mqtt.publication("SET", "late", "v"))
	mqtt.Expect("PUBACK 0x00") // the server's latency delays the request
	s.FastForward(30 * time.Minute)
	idle.Expect(t, "+PONG\r\n", "PING")
	s.FastForward(2 * time.Hour)
	idle.Closed(t)
	queued.Closed(t)
	subscribed.Closed(t)
	if late := watching.Closed(t); len(late) > 0 {
		t.Errorf("after the token's end: %q", late)
	}
	web.Ended()
	mqtt.Ended()
	out.Expect(t, "-NOAUTH Authentication required.\r\n", "PING")
	s.FastForward(5 * time.Hour)
	renewed.Expect(t, ":0\r\n", "EXISTS", "late")
}

// TestRefusedWithToken: a client whose token is valid, but which is refused for another reason, leaves nothing in
// memory until its token expires.
func TestRefusedWithToken(t *testing.T) {
	const clients, will = 200, 60 << 10
	s := emulator.Start(t, emulator.Options{CheckToken: func(token []byte, now time.Time) (emulator.Login, error) {
		return emulator.Login{User: string(token), Expires: now.Add(time.Hour)}, nil
	}})
	connect(t, s, "taken", withToken("ann"))
	heap := func() uint64 {
		await.State(t, s, func(st emulator.State) bool { return st.Connections == 1 })
		runtime.GC()
		runtime.GC() // frees what the first collection found in pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range clients {
		c := dial(t, s, "taken")
		if ack := c.Hello(withToken("eve"), func(p *packets.Connect) {
			p.WillFlag, p.WillTopic, p.WillMessage, p.WillProperties = true, "will", make([]byte, will), &packets.Properties{}
		}); ack.ReasonCode != 0x85 {
			t.Fatalf("CONNACK %#x", ack.ReasonCode)
		}
		c.Ended()
		c.Conn.Close()
	}
	if after := heap(); after > before+clients*will/4 {
		t.Errorf("%d refused clients left %d bytes", clients, after-before)
	}
}

// TestCriticalHeader: a token is refused if it has a critical header parameter that the server does not
// understand.
func TestCriticalHeader(t *testing.T) {
	i := newIssuer(t)
	now := time.Now()
	for _, crit := range []any{[]string{"exp"}, []string{}, "exp", nil} {
		claims := jwt.RegisteredClaims{Subject: "a", Audience: jwt.ClaimStrings{i.Audience}, ExpiresAt: jwt.NewNumericDate(now.Add(time.Hour))}
		token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
		token.Header["crit"] = crit
		signed, err := token.SignedString(i.Key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := i.Verify([]byte(signed), now); err == nil || !strings.Contains(err.Error(), "critical") {
			t.Errorf("crit %v: %v", crit, err)
		}
	}
}
