package contract

// What the tests outside the package need of its inside.
type (
	Case = testCase
	Need = need
)

var (
	AllCases = allCases
	RunCases = runCases
	Verdict  = verdict
)

func (c testCase) Decision() bool { return c.decision() }
