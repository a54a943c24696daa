package store

import (
	"unicode/utf8"

	"github.com/sscli/sscli/internal/glob"
)

// parseScan parses a SCAN pattern. ok is false if the pattern is malformed. A nil pattern matches
// nothing.
func (s *Store) parseScan(pattern []byte) (p *glob.Pattern, ok bool) {
	switch {
	case s.opts.Variants.ScanGlobBytes:
		return parseGlob(pattern), true
	case !utf8.Valid(pattern):
		return nil, true
	}
	return glob.Parse(string(pattern))
}
