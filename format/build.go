package format

import "strings"

// Build is the result of `version`. Unknown parts are empty.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitzero"`
	Modified bool   `json:"modified,omitzero"` // the sources differed from the commit
	Date     string `json:"date,omitzero"`
	Go       string `json:"go,omitzero"`
	Platform string `json:"platform,omitzero"`
}

func (b Build) fields(o *objectWriter) { o.result("version", b) }

func (b Build) human(w *writer) {
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
	w.print("sscli ", printable(b.Version))
	if len(known) > 0 {
		w.print(" (", printable(strings.Join(known, ", ")), ")")
	}
	w.print("\n")
}
