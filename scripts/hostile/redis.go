package main

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"time"
)

// A redisClient is an attacker's connection to the Redis port.
type redisClient struct {
	net.Conn
	in *bufio.Reader
}

func connectToRedis(t *target) (*redisClient, error) {
	conn, err := t.dial(t.redis)
	if err != nil {
		return nil, err
	}
	return &redisClient{conn, bufio.NewReader(conn)}, nil
}

// do sends a command and returns the first line of its reply.
func (c *redisClient) do(within time.Duration, words ...[]byte) (string, error) {
	out := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		out = fmt.Appendf(out, "$%d\r\n", len(w))
		out = append(append(out, w...), "\r\n"...)
	}
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	if _, err := c.Write(out); err != nil {
		return "", err
	}
	line, err := c.in.ReadString('\n')
	return strings.TrimSuffix(line, "\r\n"), err
}

// expect sends a command, and returns an error unless the first line of the reply is want.
func (c *redisClient) expect(want string, words ...string) error {
	arguments := make([][]byte, len(words))
	for i, w := range words {
		arguments[i] = []byte(w)
	}
	switch line, err := c.do(time.Minute, arguments...); {
	case err != nil:
		return err
	case line != want:
		return fmt.Errorf("%s: %s", words[0], line)
	}
	return nil
}
