package bench

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parseMix parses VERB=WEIGHT,… and returns a list that repeats each verb as often as its weight says.
// A verb without a weight has the weight 1.
func parseMix(text string) ([]string, error) {
	const maxWeight = 1000
	var verbs, seen []string
	for part := range strings.SplitSeq(text, ",") {
		verb, number, ok := strings.Cut(strings.TrimSpace(part), "=")
		verb = strings.ToLower(verb)
		weight, err := strconv.Atoi(number)
		if !ok {
			weight, err = 1, nil
		}
		switch {
		case !slices.Contains([]string{"get", "set", "del"}, verb):
			return nil, fmt.Errorf("%.32q: expected get, set or del", verb)
		case err != nil || weight < 0 || weight > maxWeight:
			return nil, fmt.Errorf("%s=%.32q: expected a weight of 0 to %d", verb, number, maxWeight)
		case slices.Contains(seen, verb):
			return nil, fmt.Errorf("%s twice", verb)
		}
		seen = append(seen, verb)
		verbs = append(verbs, slices.Repeat([]string{verb}, weight)...)
	}
	if len(verbs) == 0 {
		return nil, errors.New("all weights are 0")
	}
	return verbs, nil
}
