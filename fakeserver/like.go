package fakeserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Decision is a question that the interface leaves open, and the fake's answer.
type Decision struct {
	ID       string // as in the file that contract.Observe writes, such as metadata_cap
	Question string
	Possible string // the answers that Like takes, in words or as JSON
	Default  string // the fake's own answer, as JSON
	Answer   string // the answer in force, as JSON
	Observed bool   // an observation given to Like answers it; false: it is the default, or what an option set
}

// Decisions returns how this fake answers each open question of the interface.
func (s *Server) Decisions() []Decision {
	all := make([]Decision, len(decisions))
	own := newDecided()
	for i, d := range decisions {
		all[i] = Decision{
			ID: d.id, Question: d.question, Possible: d.possible(), Observed: s.config.observed[d.id],
			Default: string(encode(d.at(&own))), Answer: string(encode(d.at(&s.config.decided))),
		}
	}
	return all
}

// Like makes the fake answer the open questions of the interface as another
// service did. observed is the JSON file that contract.Observe and the command
// agentmessaging-fake observe write. What was not found out keeps the fake's
// own answer; Decisions tells which those are.
//
// A file of another format, a question that this fake does not know, and an
// answer that it cannot give are errors. Options behind Like overrule it.
func Like(observed []byte) Option {
	return func(c *config) error {
		var file struct {
			Format    int
			Decisions map[string]struct{ Answer json.RawMessage }
		}
		if err := json.Unmarshal(observed, &file); err != nil {
			return fmt.Errorf("Like: %w", err)
		}
		if file.Format != 1 {
			return fmt.Errorf("Like: the format is %d, not 1", file.Format)
		}
		for id, found := range file.Decisions {
			if err := c.observe(id, found.Answer); err != nil {
				return fmt.Errorf("Like: %s: %w", quoteName(id), err)
			}
		}
		return nil
	}
}

func (c *config) observe(id string, answer json.RawMessage) error {
	i := slices.IndexFunc(decisions, func(d decision) bool { return d.id == id })
	switch {
	case i < 0:
		return errors.New("this fake knows no such question")
	case len(answer) == 0 || string(answer) == "null" || string(answer) == `"unknown"`:
		return nil // nothing was found
	}
	if err := decisions[i].set(&c.decided, answer); err != nil {
		return err
	}
	c.observed[id] = true
	return nil
}
