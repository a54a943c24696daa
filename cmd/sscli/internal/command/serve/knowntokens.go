package serve

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"os"
	"slices"
)

// tokens are the service-account tokens of --sat-tokens.
type tokens [][]byte

// readTokens reads a file with a token in each line.
func readTokens(name string) (tokens, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var t tokens
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

// check reports whether a token is one of t.
func (t tokens) check(token []byte) bool {
	return slices.ContainsFunc(t, func(known []byte) bool { return subtle.ConstantTimeCompare(known, token) == 1 })
}
