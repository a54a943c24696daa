package bench

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parseMix reads VERB=WEIGHT,… and returns a list that has each verb as often as its weight says,
// in lowest terms.
func parseMix(text string) ([]string, error) {
	const maxWeight = 1000
	weights := make(map[string]int)
	var order []string
	common := 0
	for part := range strings.SplitSeq(text, ",") {
		verb, number, ok := strings.Cut(strings.TrimSpace(part), "=")
		verb = strings.ToLower(verb)
		weight, err := strconv.Atoi(number)
		if !ok {
			weight, err = 1, nil
		}
		switch {
		case !slices.Contains([]string{"get", "set", "del"}, verb):
			return nil, fmt.Errorf("%.32q: want get, set or del", verb)
		case err != nil || weight < 0 || weight > maxWeight:
			return nil, fmt.Errorf("%s=%.32q: want a weight of 0 to %d", verb, number, maxWeight)
		case slices.Contains(order, verb):
			return nil, fmt.Errorf("%s twice", verb)
		}
		order, weights[verb] = append(order, verb), weight
		common = greatestCommonDivisor(common, weight)
	}
	if common == 0 {
		return nil, errors.New("all weights are 0")
	}
	var verbs []string
	for _, verb := range order {
		verbs = append(verbs, slices.Repeat([]string{verb}, weights[verb]/common)...)
	}
	return verbs, nil
}

// greatestCommonDivisor returns the greatest common divisor; 0 if both are 0.
func greatestCommonDivisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
