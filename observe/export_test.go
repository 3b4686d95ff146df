package observe

// FakeAnswers are this project's answers to the open questions.
func FakeAnswers() map[string]any {
	all := map[string]any{}
	for _, q := range questions {
		all[q.id] = q.fake
	}
	return all
}
