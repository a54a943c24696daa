package verb

import (
	"github.com/sscli/sscli/client"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
)

// CheckSize returns the error that a SET would get because its key and its value alone exceed the
// broker's maximum packet size, or nil. It is for dry runs: a packet holds a few hundred bytes more, so
// the broker may still refuse a SET that passes. s must have had a connection.
func CheckSize(s *client.Session, set client.Command) error {
	if size, most := len(set.Key())+len(set.Value()), s.MaxPacketSize(); size > most {
		return fault.Describe(set, &client.TooLargeError{Size: size, Max: most})
	}
	return nil
}
