package serve

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"os"
	"slices"
)

// tokens are service-account tokens.
type tokens [][]byte

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

func (t tokens) check(token []byte) bool {
	return slices.ContainsFunc(t, func(known []byte) bool { return subtle.ConstantTimeCompare(known, token) == 1 })
}
