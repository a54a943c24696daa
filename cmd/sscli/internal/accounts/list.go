package accounts

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"slices"

	"github.com/sscli/sscli/internal/textfile"
)

// Tokens is a list of accepted tokens, of any form.
type Tokens [][]byte

// ReadTokens reads a file with one token per line. It is an error if the file holds no token.
func ReadTokens(name string) (Tokens, error) {
	text, err := textfile.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var t Tokens
	for line := range bytes.Lines(text) {
		if token := bytes.TrimSpace(line); len(token) > 0 {
			t = append(t, token)
		}
	}
	if len(t) == 0 {
		return nil, fmt.Errorf("%s holds no token", name)
	}
	return t, nil
}

// Check reports whether t contains a token.
func (t Tokens) Check(token []byte) bool {
	return slices.ContainsFunc(t, func(known []byte) bool { return subtle.ConstantTimeCompare(known, token) == 1 })
}
