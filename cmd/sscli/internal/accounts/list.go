package accounts

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sscli/sscli/emulator"
	"github.com/sscli/sscli/internal/files"
)

// readTokens reads a file that has one token per line; a token may be any text. It returns a
// function that refuses a token that the file does not have. A file without tokens is an error.
func readTokens(name string) (check func(token []byte, now time.Time) (emulator.Login, error), err error) {
	text, err := files.ReadText(name)
	if err != nil {
		return nil, err
	}
	var t [][]byte
	for line := range bytes.Lines(text) {
		if token := bytes.TrimSpace(line); len(token) > 0 {
			t = append(t, token)
		}
	}
	if len(t) == 0 {
		return nil, fmt.Errorf("%s holds no token", name)
	}
	return func(token []byte, _ time.Time) (emulator.Login, error) {
		if !slices.ContainsFunc(t, func(known []byte) bool { return subtle.ConstantTimeCompare(known, token) == 1 }) {
			return emulator.Login{}, errors.New("the token is not known")
		}
		return emulator.Login{}, nil
	}, nil
}
