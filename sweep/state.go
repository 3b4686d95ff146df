package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakedoor"
)

// state is what the service holds.
type state struct {
	ids      []string       // of the agents that no plan took away
	agents   []string       // a line for each, without identifiers and times
	messages map[string]int // the most messages with one text to one agent
	sent     map[string]int // messages with one text to whatever agent
	refs     map[string]int // agents with one customer_ref that no plan took away
	byok     string         // the provider of the stored key; "" where there is none
	keys     string         // the API keys and what became of them
}

func stateOf(fake *fakeserver.Server, gone map[string]bool) state {
	s := state{messages: map[string]int{}, sent: map[string]int{}, refs: map[string]int{}}
	for _, a := range fake.Agents() {
		if !gone[a.ID] {
			s.ids = append(s.ids, a.ID)
			if a.CustomerRef != "" {
				s.refs[a.CustomerRef]++
			}
		}
		var texts []string
		count := map[string]int{}
		for _, e := range fake.Conversation(a.ID) {
			texts = append(texts, e.UserRef+":"+e.Text)
			count[e.Text]++
			s.sent[e.Text]++
		}
		for text, n := range count {
			s.messages[text] = max(s.messages[text], n)
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
	for _, n := range s.sent {
		total += n
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

// shown is a text in a sentence: its length, since it may be somebody's words.
func shown(text string) string {
	return fmt.Sprintf("of %s", plural(len([]rune(strings.TrimSpace(text))), "character"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
