package report

import "slices"

// Subjects whose results the page cannot do without: where one is missing, a
// row says so.
const (
	floor     = "net-http-by-hand"
	retryable = "go-retryablehttp"
	bounded   = "go-retryablehttp-with-a-deadline"
	own       = "agentmessaging"
	ownFake   = "agentmessaging-fake"
)

// display is a subject's name for readers: a benchmark's name cannot have
// spaces, nor a slash in a value.
func display(subject string) string {
	switch subject {
	case floor:
		return "net/http by hand"
	case bounded:
		return "go-retryablehttp, deadline"
	case "vault-api":
		return "vault/api"
	}
	return subject
}

func only(subjects ...string) func(*Results) []string {
	return func(*Results) []string { return subjects }
}

var three = only(floor, retryable, own)

// clients are those three, go-retryablehttp with the deadline that the client
// gives each call, and each SDK that was measured in any call.
func clients(r *Results) []string {
	return r.subjects("Call/", floor, retryable, bounded, own)
}

// sdks are the clients of other services, and those that are generated.
func sdks(r *Results) []string { return without(clients(r), floor, retryable, bounded, own) }

func without(subjects []string, some ...string) []string {
	return slices.DeleteFunc(subjects, func(s string) bool { return slices.Contains(some, s) })
}

var otherPrograms = []string{"stripe-mock", "prism", "fake-gcs-server"}

func programs(r *Results) []string {
	return r.subjects("Program", slices.Concat([]string{floor, ownFake}, otherPrograms)...)
}

// weighed are the clients that can be added to the program of the floor.
func weighed(r *Results) []string {
	return without(r.subjects("Weight", without(clients(r), bounded)...), floor)
}
