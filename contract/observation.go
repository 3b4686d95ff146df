package contract

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Observation is how a target answered the open questions. As JSON it is the
// file that a fake reads to answer likewise. It holds no key, and no text of
// a person: evidence shows the status and the few members that matter.
type Observation struct {
	// Format is 1. A file with another format is an error of json.Unmarshal.
	Format int `json:"format"`
	// Decisions are the findings by the id of their question.
	Decisions map[string]Finding `json:"decisions"`
	// Spent adds up all runs so far.
	Spent Spend `json:"spent"`
}

// Finding is the answer to one question, or what it needs to be asked.
type Finding struct {
	// Answer is JSON; nil: NotAsked says why.
	Answer json.RawMessage `json:"answer,omitempty"`
	// Evidence is the last exchange that the answer follows from.
	Evidence *Evidence `json:"evidence,omitempty"`
	// NotAsked says what the question needs: "needs ...", or that the target
	// gave no clear answer.
	NotAsked string `json:"not_asked,omitempty"`
}

// Evidence is an exchange in short, without keys and texts.
type Evidence struct {
	Request string `json:"request"` // method, path and body, at most 80 characters of it
	Answer  string `json:"answer"`  // status, Retry-After and the members that matter
}

// UnmarshalJSON reads what json.Marshal wrote.
func (o *Observation) UnmarshalJSON(data []byte) error {
	type plain Observation
	if err := json.Unmarshal(data, (*plain)(o)); err != nil {
		return err
	}
	if o.Format != 1 {
		return errors.New("contract: the observation has another format")
	}
	return nil
}

func jsonOf(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // an answer is text, numbers, booleans and maps of them
	}
	return raw
}

// evidence is the exchange that was made last.
func (p *probe) evidence() *Evidence {
	x := p.shown
	request := strings.TrimSpace(x.endpoint.method + " " + x.endpoint.path + " " + clip(x.endpoint.body))
	answer := fmt.Sprint(x.status)
	if wait := x.header.Get("Retry-After"); wait != "" {
		answer += " Retry-After: " + clip(wait)
	}
	var body any
	if json.Unmarshal(x.body, &body) != nil {
		answer += " no JSON"
	} else {
		answer += " " + string(jsonOf(shorten("", body)))
	}
	return &Evidence{Request: p.redact(request), Answer: p.redact(answer)}
}

// telling are the members whose values evidence shows.
var telling = []string{"error", "limit_key", "status", "mode", "ok", "warmed", "created_at", "updated_at"}

// shorten keeps the names of all members, but the values of the telling ones
// only.
func shorten(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		short := map[string]any{}
		for name, member := range v {
			if plain.MatchString(name) {
				short[name] = shorten(name, member)
			}
		}
		return short
	case string:
		if slices.Contains(telling, name) && plain.MatchString(v) {
			return v
		}
	case bool, nil:
		return v
	}
	return "..."
}

// redact takes out every key, whatever a target sent back.
func (p *probe) redact(s string) string {
	for _, secret := range append(slices.Collect(maps.Values(p.keys)), providerKey) {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "[key]")
		}
	}
	return s
}

// Drift says in words where o differs from an earlier observation of the same
// target, a line for each question that both have an answer to.
func (o *Observation) Drift(earlier *Observation) (changes []string) {
	for _, q := range questions {
		then, now := earlier.Decisions[q.id].Answer, o.Decisions[q.id].Answer
		if then != nil && now != nil && !sameJSON(then, now) {
			changes = append(changes, fmt.Sprintf("%s: %s It was %s, it is %s.", q.id, q.ask, compact(then), compact(now)))
		}
	}
	return changes
}

// Markdown is a page for people: each question, the fake's answer, the
// target's, and where they differ.
func (o *Observation) Markdown() string {
	var rows, open strings.Builder
	different := 0
	for _, q := range questions {
		found, asked := o.Decisions[q.id], o.Decisions[q.id].Answer != nil
		if !asked {
			fmt.Fprintf(&open, "- %s (`%s`): %s\n", q.ask, q.id, cmp.Or(found.NotAsked, "not asked yet"))
			continue
		}
		mark := ""
		if !sameJSON(jsonOf(q.fake), found.Answer) {
			mark, different = " **differs**", different+1
		}
		fmt.Fprintf(&rows, "| %s | `%s` | `%s`%s | %s |\n", q.ask, compact(q.fake), compact(found.Answer), mark, cell(found.Evidence))
	}
	page := fmt.Sprintf("# How the service answers what the interface leaves open\n\n%d of %d questions answered, %d otherwise than the fake does by default. Spent: %s.\n",
		len(questions)-strings.Count(open.String(), "\n"), len(questions), different, o.Spent)
	page += "\n| Question | The fake | The service | Seen in |\n|---|---|---|---|\n" + rows.String()
	if open.Len() > 0 {
		page += "\nNot answered:\n\n" + open.String()
	}
	return page
}

// cell is the evidence inside a table, where a bar would end the cell.
func cell(e *Evidence) string {
	if e == nil {
		return ""
	}
	return "`" + strings.NewReplacer("|", "/", "`", "'").Replace(e.Request+" -> "+e.Answer) + "`"
}

// compact is JSON inside a table.
func compact(v any) string { return strings.ReplaceAll(string(jsonOf(v)), "|", "/") }

// sameJSON compares values and not their spelling. Of maps it compares the
// members that both have: not every target lets every one be asked.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	first, isMap := x.(map[string]any)
	second, both := y.(map[string]any)
	for name, v := range first {
		if other, there := second[name]; there && !reflect.DeepEqual(other, v) {
			return false
		}
	}
	return isMap && both || reflect.DeepEqual(x, y)
}
