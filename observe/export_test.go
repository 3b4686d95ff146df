package observe

// What the tests outside the package need of its inside.
var SameJSON = sameJSON

// FakeAnswers are this project's answers to the open questions, as JSON.
func FakeAnswers() map[string]string {
	all := map[string]string{}
	for _, q := range questions {
		all[q.id] = string(jsonOf(q.fake))
	}
	return all
}
