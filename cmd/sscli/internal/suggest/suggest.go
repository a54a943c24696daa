// Package suggest finds the name that a user may have meant.
package suggest

import (
	"strings"

	"github.com/spf13/cobra"
)

// Near returns the names closest to a word: those that differ in one letter, or else in
// two, or else those that begin with it; none if there are none. Case does not matter. The
// measure is cobra's, which suggests commands by it.
func Near(word string, names []string) []string {
	if word == "" {
		return nil
	}
	root := &cobra.Command{}
	for _, name := range names {
		root.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	var longer []string
	most := 2
	if len(word) < 3 {
		most = 1
	}
	for distance := 1; distance <= most; distance++ {
		root.SuggestionsMinimumDistance = distance
		longer = nil
		var near []string
		for _, name := range root.SuggestionsFor(word) {
			// cobra adds every name that the word begins.
			if len(name) > len(word)+distance && strings.HasPrefix(strings.ToLower(name), strings.ToLower(word)) {
				longer = append(longer, name)
			} else {
				near = append(near, name)
			}
		}
		if len(near) > 0 {
			return near
		}
	}
	return longer
}
