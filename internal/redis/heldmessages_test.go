package redis

import (
	"io"
	"testing"
)

// TestMessagesAfterTransaction: a message that arrives after SUBSCRIBE in a running transaction follows the reply to EXEC.
func TestMessagesAfterTransaction(t *testing.T) {
	t.Parallel()
	s, c, client := unserved(t, Options{})
	publish := &command{name: "publish", run: func(c *conn, _ [][]byte) error {
		s.mu.Lock()
		s.publish(nil, []byte("ch"), []byte("hello"), nil) // as another client does
		s.mu.Unlock()
		return c.reply("published")
	}}
	subscribe := s.table.byName["subscribe"]
	c.multi, c.queue = true, []queued{{publish, nil}, {subscribe, [][]byte{[]byte("subscribe"), []byte("ch")}}, {publish, nil}, {publish, nil}}
	c.execute(s.table.byName["exec"], [][]byte{[]byte("EXEC")})
	c.status("NEXT")
	go func() { c.flush() }()
	const (
		published = "$9\r\npublished\r\n"
		message   = "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$5\r\nhello\r\n"
		want      = "*4\r\n" + published + "*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n" + published + published + "+NEXT\r\n" + message + message
	)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(client, got); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
