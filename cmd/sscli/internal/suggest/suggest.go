// Package suggest finds what a user may have meant. [Near] finds the names that look like a word.
// [Command] and [Flag] find the command and the flag of sscli that do the same as a word or a flag
// of another tool.
package suggest

import "strings"

// Near returns the names that are nearest to a word by edit distance. The distance is at most 1, or 2
// if the word has at least 7 bytes. If there are no such names, Near returns the names that begin with
// the word. Case does not matter.
func Near(word string, names []string) []string {
	if word == "" {
		return nil
	}
	most := 2
	if len(word) < 7 {
		most = 1
	}
	word = strings.ToLower(word)
	near := make([][]string, most+1) // near[d-1]: names at distance d; last element: names that begin with word
	for _, name := range names {
		lower := strings.ToLower(name)
		d := distance(word, lower)
		switch {
		case d <= most:
			d = max(d, 1)
		case strings.HasPrefix(lower, word):
			d = most + 1
		default:
			continue
		}
		near[d-1] = append(near[d-1], name)
	}
	for _, found := range near {
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// distance returns the edit distance of a and b (optimal string alignment): how many bytes must be
// inserted, deleted, replaced, or swapped with the next one to turn a into b.
func distance(a, b string) int {
	var before []int // the row before last
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
