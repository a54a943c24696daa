// Package suggest finds the names that a user may have meant: [Near] of a word and the names
// that there are.
package suggest

import (
	"strings"

	"github.com/spf13/cobra"
)

// Near returns the names that differ from a word in one letter, or else in two, or else the
// names that begin with the word, or else none. A word of one or two letters may differ in one
// letter only. Case does not matter. The measure is the one by which cobra suggests commands.
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
