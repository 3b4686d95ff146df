package agentmessagingtest

import (
	"math/rand/v2"
	"slices"
)

const mostPairs = 300

// pairsOf picks pairs of plans of which the second strikes after the first, in
// the same way for a seed.
func (s *sweep) pairsOf(plans []*plan) (pairs []*plan) {
	var fit [][2]*hit
	for i, a := range plans {
		for _, b := range plans[i+1:] {
			if first, second := a.hits[0], b.hits[0]; first.target != second.target && slices.Contains(s.reached[a.name()], second.target) {
				fit = append(fit, [2]*hit{first, second})
			}
		}
	}
	random := rand.New(rand.NewPCG(s.seed, 0))
	random.Shuffle(len(fit), func(i, j int) { fit[i], fit[j] = fit[j], fit[i] })
	for _, pair := range fit[:min(len(fit), mostPairs)] {
		pairs = append(pairs, &plan{pair[:]})
	}
	return pairs
}
