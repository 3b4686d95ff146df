package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakedoor"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// state is what the service holds.
type state struct {
	ids    []string        // of the agents that no plan took away
	agents []string        // a line for each, without identifiers and times
	held   map[subject]int // how often: messages to whatever agent, and agents that no plan took away
	most   map[subject]int // the same, with the most messages to one agent
	byok   string          // the provider of the stored key; "" where there is none
	keys   string          // the API keys and what became of them
}

// subject is what a call is about: the text of a message, or the customer_ref of a
// creation.
type subject struct {
	endpoint *spec.Endpoint
	text     string
}

// subjects are those that the service holds, messages first.
func (s state) subjects() []subject {
	return slices.SortedFunc(maps.Keys(s.held), func(a, b subject) int {
		return cmp.Or(strings.Compare(b.endpoint.Name, a.endpoint.Name), strings.Compare(a.text, b.text))
	})
}

func stateOf(fake *fakeserver.Server, gone map[string]bool) state {
	s := state{held: map[subject]int{}, most: map[subject]int{}}
	for _, a := range fake.Agents() {
		if !gone[a.ID] {
			s.ids = append(s.ids, a.ID)
			if a.CustomerRef != "" {
				ref := subject{spec.CreateAgent, a.CustomerRef}
				s.held[ref]++
				s.most[ref]++
			}
		}
		var texts []string
		count := map[subject]int{}
		for _, e := range fake.Conversation(a.ID) {
			texts = append(texts, e.UserRef+":"+e.Text)
			text := subject{spec.SendMessage, e.Text}
			s.held[text]++
			count[text]++
			s.most[text] = max(s.most[text], count[text])
		}
		slices.Sort(texts)
		sms := ""
		if a.SMS != nil {
			sms = a.SMS.Status
		}
		s.agents = append(s.agents, fmt.Sprintf("%q %q %s %v %s %q", a.CustomerRef, a.SystemPrompt, a.Metadata, a.LLM, sms, texts))
	}
	for _, k := range fakedoor.Of[fakeserver.Call](fake).Keys() {
		s.keys += fmt.Sprintf("%s %s %v;", k.Label, k.Plan, k.Revoked)
	}
	if b, set := fake.BYOK(fake.Key()); set {
		s.byok = b.Provider
	}
	return s
}

// key is equal for states between which an application sees no difference.
func (s state) key() string { return fmt.Sprintf("%q %q %q %q\n", s.ids, s.agents, s.byok, s.keys) }

func (s state) equal(other state) bool {
	return slices.Equal(slices.Sorted(slices.Values(s.agents)), slices.Sorted(slices.Values(other.agents))) && s.byok == other.byok
}

func (s state) counts() string {
	total := 0
	for held, n := range s.held {
		if held.endpoint == spec.SendMessage {
			total += n
		}
	}
	return fmt.Sprintf("%s, %s, provider key %q", plural(len(s.agents), "agent"), plural(total, "message"), s.byok)
}

// difference says, without repeating a text, what s has other than want.
func (s state) difference(want state) string {
	got, expected := s.counts(), want.counts()
	if got == expected {
		got, expected = "as many, but other, agents or messages", "those of the baseline"
	}
	return fmt.Sprintf("the service has %s; the baseline leaves %s", got, expected)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
