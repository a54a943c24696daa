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
