package emulator_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eclipse/paho.golang/packets"

	ours "github.com/sscli/sscli/client"
	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/policy"
	"github.com/sscli/sscli/internal/testkit/await"
	"github.com/sscli/sscli/internal/testkit/policies"
	"github.com/sscli/sscli/internal/wire"
)

// TestPolicyJourneys plays the journeys of clients against a server with each authorization of the tables for policy check:
// the client library does what the rules allow, and is refused what they deny. What findings say of the rules is so on the
// server, too.
func TestPolicyJourneys(t *testing.T) {
	t.Parallel()
	all := policies.Right()
	for _, m := range policies.Planted() {
		all["with "+m.Name] = m.Rules
	}
	s := emulator.Start(t, emulator.Options{CheckLogin: func(string, []byte) bool { return true }, Policy: parseRules(t, "nobody:Read:x")})
	played := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p, err := policy.Parse(name, []byte(policies.Resource(all[name])))
		if err != nil {
			t.Fatal(err)
		}
		p.Attributes = make(policy.Attributes)
		// login gives a client what it needs to log in: a name and, for it, the attributes.
		login := func(who policy.Principal) policy.Principal {
			who.Username = cmp.Or(who.Username, fmt.Sprint("login ", len(p.Attributes)))
			if p.Attributes[who.Username] == nil {
				p.Attributes[who.Username] = maps.Clone(who.Attributes)
			}
			who.Attributes = p.Attributes[who.Username]
			return who
		}
		var clients []policy.Principal
		var proofs []policy.Proof
		for _, who := range p.Examples(t.Context()) {
			clients = append(clients, login(who))
		}
		for _, f := range p.Check(t.Context(), policy.Info) {
			for _, proof := range f.Proofs {
				if proof.Method <= policy.Subscribe {
					proof.Principal = login(proof.Principal)
					proofs = append(proofs, proof)
				}
			}
		}
		// The server's policy also has a rule for keys that clients look for.
		seeded, err := emulator.ParsePolicy(name, []byte(policies.Resource(all[name]+policies.Line("usernames: [seeder]", "", `{method: ReadWrite, keys: ["*"]}`))))
		if err != nil {
			t.Fatal(err)
		}
		seeded.Attributes = emulator.Attributes(p.Attributes)
		s.SetPolicy(seeded)
		alone := func() { // nobody else may take a client id that is in use
			await.State(t, s, func(st emulator.State) bool { return st.Connections == 0 })
		}
		for _, who := range clients {
			for _, library := range policy.Clients {
				played += playJourneys(t, s, p, who, library, name)
				alone()
			}
		}
		for _, proof := range proofs {
			may := func(a policy.Action) bool { return p.Decide(proof.Principal, a).Allowed }
			want := may(policy.Action{Method: policy.Connect}) && may(proof.Action)
			c := dial(t, s, proof.ClientID)
			got := askLive(c, proof.Action, func(c *packets.Connect) {
				c.UsernameFlag, c.Username, c.PasswordFlag, c.Password = true, proof.Username, true, []byte("x")
			})
			if got != want {
				t.Errorf("%s: %+v: the server says %t", name, proof, got)
			}
			c.Conn.Close()
			alone()
		}
	}
	if played < 500 {
		t.Errorf("only %d journeys", played)
	}
}

// playJourneys plays the journeys of a client, as a library does them, for two keys, and returns how many were played.
func playJourneys(t *testing.T, s *emulator.Server, p *policy.Policy, who policy.Principal, library, name string) (played int) {
	t.Helper()
	reply, _ := policy.Journey("get", library, who.ClientID, "k")
	if strings.ContainsAny(reply[2].On, "+#") {
		return 0 // no client can reply there
	}
	session, err := ours.Dial(t.Context(), ours.Options{
		Address: s.Addr().String(), ClientID: who.ClientID, Username: who.Username, Password: ours.Secret("x"), ResponseTopic: reply[2].On,
	})
	if err != nil && !errors.Is(err, ours.ErrNotAuthorized) {
		t.Errorf("%s: %+v: %v", name, who, err)
		return 0
	}
	if session != nil {
		defer session.Close()
	}
	var keys []string
	for _, a := range p.Rights(who) {
		if a.Method == policy.Read || a.Method == policy.Write {
			keys = append(keys, a.On)
		}
	}
	keys = append(keys, "elsewhere")
	for _, key := range slices.Compact(append(keys[:1:1], "elsewhere")) {
		for _, command := range []string{"get", "set", "del", "vdel", "scan", "watch", "lock"} {
			if (command == "watch" || command == "lock") && (library == "go" || library == "dotnet") {
				continue // our library subscribes to notifications, theirs do not
			}
			if command == "scan" && !utf8.ValidString(key) {
				continue // no pattern is for this key alone
			}
			journey, ok := policy.Journey(command, library, who.ClientID, key)
			if !ok {
				t.Fatal(command)
			}
			denied := policy.Action{}
			for _, a := range slices.Backward(journey) {
				if !p.Decide(who, a).Allowed {
					denied = a
				}
			}
			played++
			failure := err
			if session != nil {
				failure = play(t.Context(), s, session, command, key)
			}
			if failure != nil && !errors.Is(failure, ours.ErrNotAuthorized) {
				t.Errorf("%s: %+v as %s: %s %q: %v", name, who, library, command, key, failure)
			} else if (failure == nil) != (denied.Method == 0) {
				t.Errorf("%s: %+v as %s: %s %q: the rules deny %v %q, and the server says %v", name, who, library, command, key, denied.Method, denied.On, failure)
			}
		}
	}
	return played
}

// play does what a command does, and returns its error.
func play(ctx context.Context, s *emulator.Server, session *ours.Session, command, key string) error {
	seed := func(words ...string) {
		s.Do(emulator.Request{ClientID: "seeder", Username: "seeder", Payload: wire.AppendRequest(nil, words...), Properties: []emulator.Property{{Name: wire.PropTimestamp, Value: "1:0:seeder"}}})
	}
	seed("SET", key, "1")
	switch command {
	case "get":
		_, err := session.Get(ctx, key)
		return err
	case "set":
		_, err := session.Set(ctx, key, []byte("1"), ours.SetOptions{})
		return err
	case "del":
		_, err := session.Del(ctx, key, ours.WriteOptions{})
		return err
	case "vdel":
		_, err := session.VDel(ctx, key, []byte("1"), ours.WriteOptions{})
		return err
	case "scan":
		for found, err := range session.Keys(ctx, policy.QuotePattern(key)) {
			if err != nil || found == key {
				return err
			}
		}
		return ours.ErrNotAuthorized // SCAN lists only what may be read
	case "watch":
		w, err := session.Watch(ctx, []string{key}, ours.WatchOptions{})
		if err != nil {
			return err
		}
		return w.Close()
	}
	seed("DEL", key)
	if _, err := session.LockStatus(ctx, key); err != nil {
		return err
	}
	l, err := session.Lock(ctx, key, ours.LockOptions{Holder: []byte("me")})
	if err != nil {
		return err
	}
	return l.Release(ctx)
}
