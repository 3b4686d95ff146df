package contract

import (
	"cmp"
	"slices"
)

// allCases lists every case, in the order of the interface's sections and the
// decisions last.
func allCases() []testCase {
	var s suite
	for _, add := range []func(){
		s.agents, s.sms, s.metadata, s.messages, s.byok, s.byokOfCreations, s.byokOfAnotherKey, s.secrets, s.warmUps,
		s.members, s.unknownMembers, s.bodies, s.strictJSON, s.contentTypes, s.routes, s.methods, s.credentials, s.order,
		s.limits, s.sharedLimits, s.plans, s.counted, s.uncounted, s.operations, s.windows, s.unchanged, s.unlisted,
	} {
		add()
	}
	slices.SortStableFunc(s, func(a, b testCase) int { return cmp.Compare(a.section(), b.section()) })
	return s
}
