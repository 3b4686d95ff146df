package agentmessagingtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// state is what the service holds, in a form that can be compared: without
// identifiers and times.
type state struct {
	agents   []string       // a line for each
	messages map[string]int // the most messages with one text to one agent
	sent     map[string]int // messages with one text to whatever agent
	refs     map[string]int // agents with one customer_ref
	byok     string         // the provider of the stored key; "" where there is none
}

func (r *run) stateNow() state {
	s := state{messages: map[string]int{}, sent: map[string]int{}, refs: map[string]int{}}
	for _, a := range r.fake.Agents() {
		if a.CustomerRef != "" {
			s.refs[a.CustomerRef]++
		}
		var texts []string
		count := map[string]int{}
		for _, e := range r.fake.Conversation(a.ID) {
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
	slices.Sort(s.agents)
	if b, set := r.fake.BYOK(r.fake.Key()); set {
		s.byok = b.Provider
	}
	return s
}

// equal compares all, or, where the texts of the scenario differ from run to
// run, numbers only.
func (s state) equal(other state, coarse bool) bool {
	if coarse {
		return s.counts() == other.counts()
	}
	return slices.Equal(s.agents, other.agents) && s.byok == other.byok
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
		got, expected = "as many, but other, agents or messages", "the undisturbed ones"
	}
	return fmt.Sprintf("the service has %s; undisturbed it has %s", got, expected)
}

// more returns the first text, in order, of which there is more than
// undisturbed; "" for none.
func more(got, undisturbed map[string]int) string {
	for _, text := range slices.Sorted(maps.Keys(got)) {
		if got[text] > max(1, undisturbed[text]) {
			return text
		}
	}
	return ""
}

// shown is a text in a sentence: its length, since it may be somebody's words.
func shown(text string) string {
	return fmt.Sprintf("of %d characters", len([]rune(strings.TrimSpace(text))))
}
