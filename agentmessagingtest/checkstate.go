package agentmessagingtest

import (
	"fmt"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

func (s *sweep) lostAgent(r *run) (Finding, bool) {
	for i, unknown := range r.unknown(spec.CreateAgent) {
		if n := r.lostIDs[i] - s.baseline.lostIDs[i]; n > 0 && !unknown {
			return Finding{Endpoint: fakeserver.EndpointCreateAgent, Says: fmt.Sprintf(
				"%sthe identifier of %s is neither kept in Env.Dir nor told", when(i == 1), plural(n, "agent"))}, true
		}
	}
	return Finding{}, false
}

// unknown reports whether, up to the end of each execution, the application has
// told of an unknown outcome of the endpoint.
func (r *run) unknown(endpoint *spec.Endpoint) [2]bool {
	first := r.first.told.unknown(endpoint)
	return [2]bool{first, first || r.second.told.unknown(endpoint)}
}

func (s *sweep) doubled(r *run) (Finding, bool) {
	got, base := [2]state{r.after, r.end}, [2]state{s.baseline.after, s.baseline.end}
	sent, created := r.unknown(spec.SendMessage), r.unknown(spec.CreateAgent)
	for i := range got {
		if text, is := more(got[i].messages, base[i].messages); is && !sent[i] {
			return Finding{Endpoint: fakeserver.EndpointSendMessage, Says: fmt.Sprintf(
				"%san agent has the message %s %d times, and no unknown outcome of sending was told", when(i == 1), shown(text), got[i].messages[text])}, true
		}
		if ref, is := more(got[i].refs, base[i].refs); is && !created[i] {
			return Finding{Endpoint: fakeserver.EndpointCreateAgent, Says: fmt.Sprintf(
				"%sthere are %d agents with one customer_ref, and no unknown outcome of a creation was told", when(i == 1), got[i].refs[ref])}, true
		}
	}
	return Finding{}, false
}

func (s *sweep) lostBYOK(r *run) (f Finding, _ bool) {
	f.Endpoint = fakeserver.EndpointClearBYOK
	for i, got := range []state{r.after, r.end} {
		want := []state{s.baseline.after, s.baseline.end}[i]
		switch {
		case r.cleared && got.byok == "" && want.byok != "":
			f.Says = when(i == 1) + "the stored provider key is cleared, and no other has taken its place"
			return f, true
		case got.byok != "" && want.byok == "" && !r.played(i == 1).clears():
			f.Says = when(i == 1) + "a provider key is left stored, and the application has not tried to clear it"
			return f, true
		}
	}
	return f, false
}

// clears reports whether the application tried to clear what it had, perhaps,
// stored last.
func (p *play) clears() (clears bool) {
	for _, c := range p.calls {
		switch c.spec {
		case spec.SetBYOK:
			clears = false
		case spec.ClearBYOK:
			clears = true
		}
	}
	return clears
}
