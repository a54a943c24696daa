package redis_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/testkit/redistest"
)

// TestProtocolTwin sends the same bytes to a redis-server and to the emulator, each on a separate connection:
// the replies must be the same, and the connection must be closed or stay open on both sides.
func TestProtocolTwin(t *testing.T) {
	t.Parallel()
	server := emulator.Start(t, emulator.Options{Redis: "127.0.0.1:0"})
	socket := redistest.StartServer(t)
	for _, input := range []string{
		// Inline requests.
		"\r\n", "\n", "  \r\n", "PING\r\n", "PING\n", "  PING  \r\n", "\tping\r\n", "ping\r\r\n", "PING a b c\r\n", "GET\r\n", "foo bar\r\n",
		`SET x "a b"` + "\r\nGET x\r\n", `SET x 'a\'b'` + "\r\nGET x\r\n", `SET x "\x41\n\q\xZZ"` + "\r\nGET x\r\n", `SET x ""` + "\r\nGET x\r\n",
		`SET x "abc` + "\r\n", `SET x 'abc` + "\r\n", `SET x "a"b` + "\r\n", `ECHO a"b"` + "\r\n", `ECHO a'b'` + "\r\n", `ECHO a\nb` + "\r\n", `ECHO 'a\nb'` + "\r\n",
		"SET x \"a\x01\x1b\x7f\xff\"\r\nGET x\r\n", "SET x 'a\x01\\n\x7f'\r\nGET x\r\n", "SET x '\t\v\f\r'\r\nGET x\r\n",
		"get a\tb\r\n", strings.Repeat("A", 70_000), strings.Repeat("A", 70_000) + "\r\n",

		// Lengths.
		"*0\r\n", "*-1\r\n", "*-10\r\n", "*a\r\n", "*\r\n", "*+1\r\n", "*01\r\n", "* 1\r\n", "*1\n$4\r\nPING\r\n", "*3000000000\r\n", "*2147483648\r\n",
		"*9223372036854775808\r\n", "*-9223372036854775809\r\n", "*" + strings.Repeat("1", 70_000), "*1\r\n$" + strings.Repeat("1", 70_000),
		"*1\r\n$\r\n", "*1\r\n$0\r\n\r\n", "*1\r\n$-1\r\n", "*1\r\n$04\r\nPING\r\n", "*1\r\n$+4\r\nPING\r\n", "*1\r\n$blabla\r\n", "*1\r\n$536870913\r\n", "*1\r\n$2000000000\r\n",
		"*1\r\nfoo\r\n", "*1\r\n\xff\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-10\r\n", "*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n", "$1\r\na\r\n",

		// Requests whose words errors quote.
		"*1\r\n$5\r\np\x00ing\r\n", "*2\r\n$4\r\nfoo\n\r\n$3\r\na\nb\r\n", "*2\r\n$0\r\n\r\n$3\r\na\nb\r\n",
		"*3\r\n$3\r\nfoo\r\n$200\r\n" + strings.Repeat("x", 200) + "\r\n$1\r\na\r\n", "*1\r\n$200\r\n" + strings.Repeat("y", 200) + "\r\n",
		"*4\r\n$3\r\nfoo\r\n$100\r\n" + strings.Repeat("x", 100) + "\r\n$100\r\n" + strings.Repeat("z", 100) + "\r\n$3\r\nabc\r\n", "*2\r\n$6\r\nconfig\r\n$200\r\n" + strings.Repeat("x", 200) + "\r\n",

		// The end of a connection.
		"quit\r\nping\r\n", "quit foo\r\n", "multi\r\nquit\r\n", "post\r\nping\r\n", "host:\r\nping\r\n", "POST / HTTP/1.1\r\n", "*2\r\n$4\r\nPOST\r\n$1\r\n/\r\n", "multi\r\n*1\r\nfoo\r\n",

		// CLIENT REPLY.
		"client reply off\r\nping\r\nset a b\r\nclient reply on\r\nping\r\n", "client reply skip\r\nping\r\nping\r\n", "client reply skip\r\nclient reply on\r\nping\r\n",
		"client reply off\r\nclient reply skip\r\nping\r\nclient reply on\r\nping\r\n", "client reply off\r\nfoo\r\nmulti\r\nset a 1\r\nexec\r\nclient reply on\r\nping\r\n",
		"client reply skip\r\nfoo\r\nfoo\r\n", "client reply off\r\nreset\r\nping\r\n", "client reply skip\r\nsubscribe a\r\nping\r\n",
		"client reply off\r\nsubscribe a\r\npsubscribe b\r\nunsubscribe\r\npunsubscribe\r\nclient reply on\r\nping\r\n",
		"multi\r\nclient reply off\r\nping\r\nexec\r\nping\r\nclient reply on\r\n", "multi\r\nping\r\nclient reply off\r\nping\r\nclient reply on\r\nexec\r\n", "multi\r\nclient reply skip\r\nping\r\nexec\r\nping\r\n",
		"hello 3\r\nclient reply off\r\nsubscribe a\r\npublish a x\r\nclient reply on\r\n", "hello 3\r\nsubscribe a\r\nmulti\r\nclient reply off\r\npublish a x\r\nexec\r\nclient reply on\r\n",

		// Subscriptions, in transactions too.
		"subscribe a\r\nget x\r\nping\r\nping x\r\nping a b\r\nsubscribe\r\nmulti\r\nhello 3\r\nreset\r\nget nokey\r\n", "subscribe a\r\nfoo\r\nget\r\nquit\r\n",
		"subscribe a a b\r\nunsubscribe a c\r\npunsubscribe\r\nunsubscribe\r\n", "unsubscribe\r\npunsubscribe\r\nunsubscribe a b\r\n",
		"multi\r\nsubscribe a\r\nping\r\nunsubscribe\r\nexec\r\nping\r\n", "multi\r\npsubscribe b*\r\npublish bb x\r\nexec\r\n",
		"hello 3\r\nmulti\r\nsubscribe a\r\npublish a x\r\nset q 1\r\nexec\r\n", "hello 3\r\nsubscribe a\r\nmulti\r\npublish a x\r\nping\r\nexec\r\n",
		"hello 3\r\nsubscribe a\r\nmulti\r\nunsubscribe a\r\npublish a x\r\nexec\r\n", "hello 3\r\nsubscribe a\r\nget nokey\r\npublish a y\r\nunsubscribe a\r\nunsubscribe\r\nping\r\n",

		// Transactions.
		"exec\r\ndiscard\r\nmulti\r\nmulti\r\nwatch x\r\nexec\r\n", "multi\r\nfoo\r\nset a 1\r\nexec\r\nexec\r\n", "multi\r\nget\r\ndiscard\r\nget nokey\r\n",
		"set w 1\r\nwatch w\r\nset w 2\r\nmulti\r\nget w\r\nexec\r\nmulti\r\nget w\r\nexec\r\n", "watch w\r\nset w 2\r\nunwatch\r\nmulti\r\nget w\r\nexec\r\n",
		"watch w\r\nflushall\r\nmulti\r\nping\r\nexec\r\n", "del w\r\nwatch w\r\nflushall\r\nmulti\r\nping\r\nexec\r\n", "multi\r\nset w x\r\nincr w\r\nexec\r\n", "multi\r\nreset\r\nexec\r\n",

		// Clients and users.
		"command list filterby pattern GETd*\r\ncommand list filterby pattern hElLo\r\n", "acl whoami\r\nacl whoami x\r\nacl\r\nhello 3\r\nacl whoami\r\n",
		"client kill user nobody\r\nclient kill user default id 123456\r\n", "client unblock 1234\r\nclient unblock x\r\nclient unblock 1234 error\r\nclient unblock 1234 timeout\r\nclient unblock 1234 x\r\nclient unblock\r\n",

		// There is no cluster.
		"cluster slots\r\ncluster shards\r\ncluster info\r\nreadonly\r\nreadwrite\r\nasking\r\n",

		// Cursors.
		"flushall\r\nscan\r\n", "scan a\r\n", "scan 1.5\r\n", "scan 18446744073709551616\r\n", `scan " 0"` + "\r\n", "scan 0x0\r\n", "scan 0 count -5\r\n", "scan 0 count\r\n", "scan 0 foo bar\r\n", "scan 0 type\r\n",
	} {
		var got [2]string
		for i, c := range []*redistest.Client{redistest.Dial(t, "unix", socket), redistest.Dial(t, "tcp", redistest.Address(server.RedisURL()))} {
			got[i] = exchange(t, c, input)
		}
		if got[0] != got[1] {
			t.Errorf("%.100q\nredis-server %q\nemulator     %q", input, got[0], got[1])
		}
	}
}

// exchange sends bytes and a PING, and returns the output before the reply to the PING or before the end of
// the connection.
func exchange(t *testing.T, c *redistest.Client, input string) string {
	t.Helper()
	const last = "nothing more"
	_, _ = io.WriteString(c.Conn, input+"\r\n*2\r\n$4\r\nping\r\n$12\r\n"+last+"\r\n") // the connection may be closed by now
	if err := c.Conn.SetReadDeadline(time.Now().Add(redistest.Patience)); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for {
		line, err := c.Reader.ReadBytes('\n')
		got = append(got, line...)
		if bytes.HasSuffix(got, []byte(last+"\r\n")) {
			return idField.ReplaceAllString(string(got), "id")
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && len(got) == 0 {
				t.Fatalf("%.100q: %v", input, err)
			}
			return idField.ReplaceAllString(string(got), "id") + "(closed)"
		}
	}
}

// TestNewerCommands: commands that redis-server 7.0 does not have, or lists in other groups.
func TestNewerCommands(t *testing.T) {
	t.Parallel()
	_, c := start(t, emulator.Options{})
	c.Expect(t, "-ERR wrong number of arguments for 'delex' command\r\n", "DELEX", "k", "IFEQ")
	c.Expect(t, "-ERR syntax error\r\n", "DELEX", "k", "IFNE", "v")
	if got := c.Do(t, "COMMAND", "LIST", "FILTERBY", "ACLCAT", "string"); !strings.Contains(got, "\r\nincr\r\n") || strings.Contains(got, "\r\nping\r\n") {
		t.Errorf("the string commands: %q", got)
	}
	c.Expect(t, "*0\r\n", "COMMAND", "LIST", "FILTERBY", "ACLCAT", "nothing")
}
