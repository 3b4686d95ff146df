package report

import "slices"

// Subjects that tables, targets and pictures name one by one.
const (
	floor      = "net-http-by-hand"
	retryable  = "go-retryablehttp"
	bounded    = "go-retryablehttp-with-a-deadline"
	own        = "agentmessaging"
	ownBounded = "agentmessaging-with-a-deadline" // the caller's, in place of the client's
	ownFake    = "agentmessaging-fake"
)

// display is a subject's name for readers: a benchmark's name cannot have
// spaces, nor a slash in a value.
func display(subject string) string {
	switch subject {
	case floor:
		return "net/http by hand"
	case bounded:
		return "go-retryablehttp, deadline"
	case ownBounded:
		return "agentmessaging, caller's deadline"
	case "vault-api":
		return "vault/api"
	}
	return subject
}

func only(subjects ...string) func(*Results) []string {
	return func(*Results) []string { return subjects }
}

var three = only(floor, retryable, own)

// ownCalls make the call of this service, and are no peers of it.
var ownCalls = []string{floor, retryable, bounded, own, ownBounded}

// otherClients are expected even where none was measured: a row then says so,
// and a target that is kept without them says that it is.
var otherClients = []string{
	"anthropic-sdk-go", "go-github", "oapi-codegen", "openai-go", "resend-go", "slack-go", "stripe-go", "vault-api",
}

// clients are all of those, and any newer one that was measured in any call.
func clients(r *Results) []string {
	return r.subjects("Call/", slices.Concat(ownCalls, otherClients)...)
}

// sdks are the clients of other services, and those that are generated.
func sdks(r *Results) []string { return without(clients(r), ownCalls...) }

func without(subjects []string, some ...string) []string {
	return slices.DeleteFunc(subjects, func(s string) bool { return slices.Contains(some, s) })
}

var otherPrograms = []string{"stripe-mock", "prism", "fake-gcs-server"}

func programs(r *Results) []string {
	return r.subjects("Program", slices.Concat([]string{floor, ownFake}, otherPrograms)...)
}

// weighed are the clients that can be added to the program of the floor. A
// deadline adds none.
func weighed(r *Results) []string {
	return without(r.subjects("Weight", without(clients(r), bounded, ownBounded)...), floor)
}
