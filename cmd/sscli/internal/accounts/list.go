package accounts

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"slices"

	"github.com/sscli/sscli/internal/files"
)

// readTokens reads a file that has one token per line; a token may be any text. It returns a
// function that reports whether the file has a given token. A file without tokens is an error.
func readTokens(name string) (check func(token []byte) bool, err error) {
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
	return func(token []byte) bool {
		return slices.ContainsFunc(t, func(known []byte) bool { return subtle.ConstantTimeCompare(known, token) == 1 })
	}, nil
}
