package client

import "context"

// Once connects, sends one request, and disconnects. ctx bounds all of it but the
// goodbye, which takes a second at most. The errors are those of [Dial] and
// [Session.Do].
func Once(ctx context.Context, o Options, c Command) (Reply, error) {
	if err := c.Check(); err != nil {
		return Reply{}, err
	}
	s, err := Dial(ctx, o)
	if err != nil {
		return Reply{}, err
	}
	defer s.Close()
	return s.Do(ctx, c)
}
