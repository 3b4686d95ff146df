package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakeadmin"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/sweep/internal/disk"
)

// persisted is the state that outlives a process: the service, the folder, the time.
type persisted struct {
	dir     disk.Image
	service []byte        // as fakeserver.WriteState writes it
	elapsed time.Duration // since the first execution began
	seen
	state state
}

// seen is what the executions so far have shown of the service and the application.
type seen struct {
	gone         map[string]bool   // agents that a plan has removed, or for which a fault answered 404
	agents       map[string]string // descriptions of agents, by their identifiers
	providerKeys map[string]string // by their fingerprints, which differ between fakes
	errors       map[string]bool   // the beginnings of calls' errors
}

func (s seen) clone() seen {
	return seen{maps.Clone(s.gone), maps.Clone(s.agents), maps.Clone(s.providerKeys), maps.Clone(s.errors)}
}

// nothingPersisted is the state that the first execution finds.
var nothingPersisted = persisted{seen: seen{map[string]bool{}, map[string]string{}, map[string]string{}, map[string]bool{}}}

// Two states have the same key if a restart cannot distinguish them.
func (p persisted) key() string { return p.state.key() + p.dir.String() }

// state describes the data of the service.
type state struct {
	ids   []string       // identifiers of the agents that no plan removed
	items map[string]int // how often the service holds a thing, such as a message with its agent; the fake's numbers are left out, since they differ between runs
	order map[string]int // the messages of each agent, in their order
	// copies counts each subject. A text counts in the conversation that has it most often,
	// a customer_ref among all agents that no plan removed.
	copies  map[subject]int
	byok    bool   // a provider key is stored
	apiKeys string // their labels, plans and revocations
}

// subject identifies the purpose of a call: the text of a message, or the customer_ref of
// a creation.
type subject struct {
	endpoint *spec.Endpoint
	text     string
}

// subjects returns the subjects in the service, messages first.
func (s state) subjects() []subject {
	return slices.SortedFunc(maps.Keys(s.copies), func(a, b subject) int {
		return cmp.Or(strings.Compare(b.endpoint.Name, a.endpoint.Name), strings.Compare(a.text, b.text))
	})
}

// stateOf reads the data of the service.
func stateOf(fake *fakeserver.Server, seen seen) state {
	s := state{items: map[string]int{}, order: map[string]int{}, copies: map[subject]int{}}
	for _, a := range fake.Agents() {
		if !seen.gone[a.ID] {
			s.ids = append(s.ids, a.ID)
			if a.CustomerRef != "" {
				s.copies[subject{spec.CreateAgent, a.CustomerRef}]++
			}
		}
		if a.SMS != nil {
			a.SMS.PhoneNumber = "" // depends on the agent's number
		}
		agent := volatile.ReplaceAllString(fmt.Sprintf("%q %q %q %q %q", a.ID, a.CustomerRef, a.SystemPrompt, a.Metadata, a.LLM), "#")
		s.items["agent: "+agent]++
		s.items[fmt.Sprintf("sms: %s %q", agent, a.SMS)]++
		order, count := "order: ", map[subject]int{}
		for _, e := range fake.Conversation(a.ID) {
			text := subject{spec.SendMessage, e.Text}
			count[text]++
			s.copies[text] = max(s.copies[text], count[text])
			message := fmt.Sprintf("message: %s %q %q", agent, e.UserRef, e.Text)
			s.items[message]++
			order += message
		}
		s.order[order]++
	}
	for _, k := range fakeadmin.Of[fakeserver.Call](fake).Keys() {
		s.apiKeys += fmt.Sprintf("%s %s %v;", k.Label, k.Plan, k.Revoked)
	}
	var b fakeserver.BYOK
	if b, s.byok = fake.BYOK(fake.Key()); s.byok {
		s.items[fmt.Sprintf("provider key: %q %q %q %q %q", b.Provider, b.BaseURL, b.Model, b.Label, seen.providerKeys[b.Fingerprint])]++
	}
	return s
}

// Two states have the same key if an application cannot distinguish them.
func (s state) key() string { return fmt.Sprintf("%q %v %q\n", s.ids, s.items, s.apiKeys) }

// difference names a kind of thing that differs between two states, such as "message"; "" if
// nothing differs.
func difference(got, want map[string]int) string {
	return cmp.Or(missing(got, want), missing(want, got))
}

// missing names the first kind of thing of which got has less than want; "" if there is none.
func missing(got, want map[string]int) string {
	for _, thing := range slices.Sorted(maps.Keys(want)) {
		if name, _, _ := strings.Cut(thing, ":"); got[thing] < want[thing] {
			return name
		}
	}
	return ""
}
