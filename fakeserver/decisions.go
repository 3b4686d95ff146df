package fakeserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
)

// Decision is a question that the interface leaves open, and the fake's answer.
type Decision struct {
	ID       string // for WithDecision, and in the file that observe.Run writes, such as metadata_cap
	Question string // in words
	Possible string // the answers that Like and WithDecision take, in words or as JSON
	Default  string // the fake's own answer, as JSON
	Answer   string // the answer in force, as JSON
	Observed bool   // Like's observation has this answer, or at least one member of an answer that is an object
	Inferred bool   // Like's observation has only bounds: the answer is the number between the bounds that is nearest to Default
}

// Decisions returns how this fake answers the open questions of the interface that WithDecision
// can change.
func (s *Server) Decisions() []Decision {
	own, inForce := answersOf(defaultBehavior), answersOf(s.config.behavior)
	all := make([]Decision, len(decisions.All))
	for i, q := range decisions.All {
		all[i] = Decision{
			ID: q.ID, Question: q.Text, Possible: possible(q),
			Observed: s.config.sources[q.ID] == observed, Inferred: s.config.sources[q.ID] == inferred,
			Default: string(own[q.ID]), Answer: string(inForce[q.ID]),
		}
	}
	return all
}

// answersOf returns the answers of a Behavior as JSON, by the ids of their questions.
func answersOf(b *service.Behavior) (answers map[string]json.RawMessage) {
	_ = json.Unmarshal(encode(b), &answers)
	return answers
}

// possible says which answers a question takes, for Decision.Possible and for errors. If
// the question has no list of answers, the type of its default says what is possible.
func possible(q decisions.Question) string {
	if q.Allowed == nil {
		return sameTypeAs(q.Default)
	}
	words := make([]string, len(q.Allowed))
	for i, a := range q.Allowed {
		words[i] = string(encode(a))
	}
	// A bucket can have any size, so no list can name them all.
	if q.ID == "windows" {
		words = append(words, `"token bucket of 10" (of any number)`)
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// sameTypeAs describes the answers that have the type of a default.
func sameTypeAs(answer any) string {
	switch answer.(type) {
	case bool:
		return "true or false"
	case int:
		return "a number from 2"
	case string:
		return "a name"
	}
	return "an object with members of " + string(encode(answer))
}

// setAnswer puts an answer into a Behavior. Members that an object leaves out keep their
// answers.
func setAnswer(b *service.Behavior, q decisions.Question, answer json.RawMessage) error {
	var own, given any
	_ = json.Unmarshal(encode(q.Default), &own)
	_ = json.Unmarshal(answer, &given)
	if !sameShape(own, given) || !allows(q, given) || json.Unmarshal(fmt.Appendf(nil, `{%q:%s}`, q.ID, answer), b) != nil {
		return fmt.Errorf("the answer is not %s", possible(q))
	}
	return nil
}

// sameShape reports whether given has the type of own. An object may have only members
// that own has, with the same types. null and an empty text are not answers.
func sameShape(own, given any) bool {
	known, _ := own.(map[string]any)
	members, _ := given.(map[string]any)
	for name, value := range members {
		if !sameShape(known[name], value) {
			return false
		}
	}
	return given != nil && given != "" && reflect.TypeOf(own) == reflect.TypeOf(given)
}

// allows reports whether an answer of the right type is a possible answer to the
// question.
func allows(q decisions.Question, answer any) bool {
	text, _ := answer.(string)
	number, isNumber := answer.(float64)
	_, isBucket := service.Bucket(text)
	switch {
	case q.ID == "windows" && isBucket:
		return true
	case q.Allowed != nil:
		return slices.ContainsFunc(q.Allowed, func(a any) bool { return string(encode(a)) == string(encode(answer)) })
	}
	return !isNumber || number >= 2
}

// finding is the part of an observe.Finding that Like reads. A separate type keeps
// package observe, which makes calls, out of every program that has a fake.
type finding struct {
	Answer  json.RawMessage
	AtLeast int `json:"at_least"` // bounds of a number; 0: none
	AtMost  int `json:"at_most"`
}

// answer returns the answer that the fake takes from the finding; nil if the finding has
// neither an answer nor a bound.
func (f finding) answer(q decisions.Question) (json.RawMessage, source) {
	if text := string(f.Answer); text != "" && text != "null" && text != `"unknown"` {
		return f.Answer, observed
	}
	own, isNumber := q.Default.(int)
	if !isNumber || q.Allowed != nil || f.AtLeast <= 0 && f.AtMost <= 0 {
		return nil, chosen
	}
	// The fake's own answer, moved into the bounds, so that it stays as near to the
	// documented default as possible.
	within := max(own, f.AtLeast)
	if f.AtMost > 0 {
		within = min(within, f.AtMost)
	}
	return encode(within), inferred
}

// Like makes the fake answer the open questions of the interface as another service did.
// observed is the content of the JSON file that observe.Observation.WriteFile and the
// command agentmessaging-fake observe write. If the file has only bounds of a number, the
// fake takes the number between them that is nearest to its own answer. A question that
// the file does not answer keeps the fake's own answer, which is the default for all of
// them. Decisions shows for each answer which of the three cases applies. A later option
// replaces its answers.
//
// A file of another format, a question that this fake does not know, an answer that
// it cannot give, and bounds that exclude every number are errors.
func Like(observed []byte) Option {
	return func(c *config) error {
		var file struct {
			Format    int
			Decisions map[string]finding
		}
		if json.Unmarshal(observed, &file) != nil {
			return errors.New("Like: not the JSON that observe.Run writes")
		}
		if file.Format != 1 {
			return fmt.Errorf("Like: the format is %d, not 1; write the file with observe.Run or agentmessaging-fake observe of this version", file.Format)
		}
		for id, found := range file.Decisions {
			err := c.setDecision(id, found.answer)
			if found.AtMost > 0 && found.AtLeast > found.AtMost {
				err = fmt.Errorf("at_least is %d, more than at_most, which is %d", found.AtLeast, found.AtMost)
			}
			if err != nil {
				return fmt.Errorf("Like: %s: %w", quoteName(id), err)
			}
		}
		return nil
	}
}

// setDecision sets the answer to the question with this id, if answerTo returns an
// answer. The first decision gives the fake a separate Behavior, since all fakes share
// defaultBehavior.
func (c *config) setDecision(id string, answerTo func(decisions.Question) (json.RawMessage, source)) error {
	i := slices.IndexFunc(decisions.All, func(q decisions.Question) bool { return q.ID == id })
	if i < 0 {
		return errors.New("unknown question; the questions are " + strings.Join(slices.Sorted(maps.Keys(answersOf(defaultBehavior))), ", "))
	}
	answer, from := answerTo(decisions.All[i])
	if answer == nil {
		return nil
	}
	if c.sources == nil {
		c.behavior, c.sources = newBehavior(), map[string]source{}
	}
	c.sources[id] = from
	return setAnswer(c.behavior, decisions.All[i], answer)
}

// WithDecision changes the fake's answer to one open question of the interface:
//
//	fakeserver.WithDecision("metadata_cap", 8000)
//	fakeserver.WithDecision("windows", "token bucket of 10")
//
// id is the ID of one of Decisions, which also shows the possible answers and the
// default. answer is encoded as JSON. A "token bucket" saves up as many calls as
// the limit allows in a window. A "token bucket of 10" saves up at most 10 where the
// window is a minute. An unknown id and an answer that the fake cannot give are errors.
func WithDecision(id string, answer any) Option {
	return func(c *config) error {
		value, err := json.Marshal(answer)
		if err == nil {
			err = c.setDecision(id, func(decisions.Question) (json.RawMessage, source) { return value, chosen })
		}
		if err != nil {
			return fmt.Errorf("WithDecision: %s: %w", quoteName(id), err)
		}
		return nil
	}
}
