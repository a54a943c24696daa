package format

import "strings"

// Build is the result of `version`. Unknown parts are empty.
type Build struct {
	Version, Commit, Date, Go, Platform string
	Modified                            bool // files differed from the commit
}

func (b Build) fields() object {
	return object{
		{"op", "version"},
		{"version", b.Version},
		{"commit", nonEmpty(b.Commit)},
		{"modified", when(b.Modified, true)},
		{"date", nonEmpty(b.Date)},
		{"go", nonEmpty(b.Go)},
		{"platform", nonEmpty(b.Platform)},
	}
}

func (b Build) human(dst []byte, _ *style) []byte { return b.raw(dst) }

func (b Build) raw(dst []byte) []byte {
	dst = appendText(append(dst, "sscli "...), b.Version)
	var known []string
	commit := b.Commit
	if b.Modified {
		commit += " modified"
	}
	for _, part := range []string{commit, b.Date, b.Go, b.Platform} {
		if part != "" {
			known = append(known, part)
		}
	}
	if len(known) > 0 {
		dst = append(appendText(append(dst, " ("...), strings.Join(known, ", ")), ')')
	}
	return append(dst, '\n')
}
