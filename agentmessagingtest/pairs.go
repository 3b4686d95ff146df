package agentmessagingtest

import "math/rand/v2"

const mostPairs = 300

// pairsOf picks pairs of plans at two places, in the same way for a seed.
func (s *sweep) pairsOf(plans []*plan) (pairs []*plan) {
	random := rand.New(rand.NewPCG(s.seed, 0))
	seen := map[string]bool{}
	for tries := 0; len(pairs) < mostPairs && tries < 10*mostPairs; tries++ {
		a, b := plans[random.IntN(len(plans))].hits[0], plans[random.IntN(len(plans))].hits[0]
		pair := (&plan{[]*hit{a, b}}).fresh()
		if name := pair.name(); a.target != b.target && !seen[name] {
			seen[name] = true
			pairs = append(pairs, pair)
		}
	}
	return pairs
}
