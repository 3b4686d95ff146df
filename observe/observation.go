package observe

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
	"github.com/agent-messaging-service/agentmessaging-go/internal/wholefile"
)

// Observation is how a target answered the open questions. As JSON it is the
// file that a fake reads to answer likewise. It holds no key, no id and no text
// of a person: evidence shows the status and the few members that matter.
type Observation struct {
	// Format is 1. A file with another format is an error of json.Unmarshal.
	Format int `json:"format"`
	// Decisions are the findings by the id of their question.
	Decisions map[string]Finding `json:"decisions"`
	// Limits are the numbers that were measured, by this project's names:
	// key_minute, where the key made no other calls meanwhile.
	Limits map[string]int `json:"limits,omitempty"`
	// Traffic counts what Watch saw that answers no question, such as
	// "POST /v1/agents 200" or "member region of POST /v1/agents".
	Traffic map[string]Sight `json:"traffic,omitempty"`
	// Spent adds up all runs so far.
	Spent Spend `json:"spent"`
}

// Finding is the answer to one question, or bounds of it, or what it needs to be
// asked.
type Finding struct {
	// Answer is JSON; nil where none is known exactly.
	Answer json.RawMessage `json:"answer,omitempty"`
	// AtLeast and AtMost bound an answer that is a number and not known
	// exactly: metadata of AtLeast characters went through. 0 is no bound.
	AtLeast int `json:"at_least,omitempty"`
	AtMost  int `json:"at_most,omitempty"`
	// Evidence is the last exchange that the answer follows from.
	Evidence *Evidence `json:"evidence,omitempty"`
	// Seen is the day on which the answer was last seen, in UTC: "2026-01-31".
	Seen string `json:"seen,omitempty"`
	// Count is how many calls that passed a Watcher showed the answer.
	Count int `json:"count,omitempty"`
	// NotAsked says what the question needs: "needs ...", or that the target
	// gave no clear answer.
	NotAsked string `json:"not_asked,omitempty"`
}

// Evidence is an exchange in short, without keys and texts.
type Evidence struct {
	Request string `json:"request"` // method, path and body, at most 80 characters of it
	Answer  string `json:"answer"`  // status, Retry-After and the members that matter
}

// Sight is how often a Watcher saw something, and the last day.
type Sight struct {
	Count int    `json:"count"`
	Seen  string `json:"seen"`
}

// Known reports whether the finding says anything of the answer.
func (f Finding) Known() bool { return f.Answer != nil || f.AtLeast > 0 || f.AtMost > 0 }

func today(now time.Time) string { return now.UTC().Format(time.DateOnly) }

func (o *Observation) init() {
	if o.Format = 1; o.Decisions == nil {
		o.Decisions = map[string]Finding{}
	}
}

// UnmarshalJSON reads what json.Marshal wrote.
func (o *Observation) UnmarshalJSON(data []byte) error {
	type plain Observation
	if err := json.Unmarshal(data, (*plain)(o)); err != nil {
		return err
	}
	if o.Format != 1 {
		return errors.New("observe: the observation has another format")
	}
	return nil
}

// ReadFile reads an observation. A file that does not exist has none: no error.
func ReadFile(path string) (*Observation, error) {
	o := new(Observation)
	o.init()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err == nil {
		err = json.Unmarshal(text, o)
	}
	return o, err
}

// WriteFile writes the observation to a file that is there whole or not at all.
// It keeps nothing of a file that was there: see Keep.
func (o *Observation) WriteFile(path string) error {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(path, append(text, '\n'))
}

// Keep takes over what an earlier observation knows and o does not: whole
// answers, and members of answers that are objects. What o found replaces what
// was known. Counts and what was spent add up.
func (o *Observation) Keep(earlier *Observation) {
	o.init()
	for id, then := range earlier.Decisions {
		now := o.Decisions[id]
		if len(o.missing(id, earlier)) > 0 {
			o.Decisions[id] = now.keep(then)
		} else if sameFinding(then, now) {
			now.Count += then.Count
			o.Decisions[id] = now
		}
	}
	for name, n := range earlier.Limits {
		o.measured(name, cmp.Or(o.Limits[name], n))
	}
	for what, then := range earlier.Traffic {
		if o.Traffic == nil {
			o.Traffic = map[string]Sight{}
		}
		o.Traffic[what] = Sight{o.Traffic[what].Count + then.Count, max(o.Traffic[what].Seen, then.Seen)}
	}
	o.Spent = o.Spent.Plus(earlier.Spent)
}

func (o *Observation) measured(limit string, n int) {
	if o.Limits == nil {
		o.Limits = map[string]int{}
	}
	o.Limits[limit] = n
}

// keep is the earlier finding with what the later one has of it. It was last
// seen whole when the earlier one was.
func (f Finding) keep(then Finding) Finding {
	if !f.Known() {
		then.NotAsked = f.NotAsked
		return then
	}
	members := membersOf(then.Answer)
	maps.Copy(members, membersOf(f.Answer))
	f.Answer, f.Seen = jsonOf(members), then.Seen
	return f
}

// missing are the parts of an earlier answer that o has no answer to: all of it
// ("") or the members that it lacks.
func (o *Observation) missing(id string, earlier *Observation) []string {
	then, now := earlier.Decisions[id], o.Decisions[id]
	switch {
	case !then.Known():
		return nil
	case !now.Known(), then.Answer != nil && now.Answer == nil && sameFinding(then, now):
		return []string{""}
	}
	old, members := membersOf(then.Answer), membersOf(now.Answer)
	maps.DeleteFunc(old, func(name string, _ any) bool { _, there := members[name]; return there || members == nil })
	return slices.Sorted(maps.Keys(old))
}

// Missing says, a line each, what an earlier observation of the same target has
// an answer to and o has none, with the day on which it was last seen.
func (o *Observation) Missing(earlier *Observation) (lines []string) {
	for _, q := range questions {
		then := earlier.Decisions[q.id]
		for _, member := range o.missing(q.id, earlier) {
			name := strings.TrimSuffix(q.id+"."+member, ".")
			lines = append(lines, fmt.Sprintf("%s (last seen %s): %s",
				name, cmp.Or(then.Seen, "on an unknown day"), cmp.Or(o.Decisions[q.id].NotAsked, "not asked")))
		}
	}
	return lines
}

// Drift says in words where o differs from an earlier observation of the same
// target, a line for each question that both have an answer to.
func (o *Observation) Drift(earlier *Observation) (changes []string) {
	changes, _ = o.compare(earlier)
	return changes
}

// Unchanged counts the questions that both have the same answer to.
func (o *Observation) Unchanged(earlier *Observation) int {
	_, unchanged := o.compare(earlier)
	return unchanged
}

func (o *Observation) compare(earlier *Observation) (changes []string, unchanged int) {
	for _, q := range questions {
		switch then, now := earlier.Decisions[q.id], o.Decisions[q.id]; {
		case !then.Known() || !now.Known():
		case sameFinding(then, now):
			unchanged++
		default:
			changes = append(changes, fmt.Sprintf("%s: %s It was %s, it is %s.", q.id, q.ask, then, now))
		}
	}
	return changes, unchanged
}

// String is the answer as JSON, or its bounds in words.
func (f Finding) String() string {
	switch {
	case f.Answer != nil:
		return compact(f.Answer)
	case f.AtLeast > 0 && f.AtMost > 0:
		return fmt.Sprintf("%d to %d", f.AtLeast, f.AtMost)
	case f.AtLeast > 0:
		return fmt.Sprintf("at least %d", f.AtLeast)
	case f.AtMost > 0:
		return fmt.Sprintf("at most %d", f.AtMost)
	}
	return "unknown"
}

// sameFinding reports whether two findings may be of one service. Of objects it
// compares the members that both have, and of bounds whether they overlap.
func sameFinding(a, b Finding) bool {
	if a.Answer == nil || b.Answer == nil {
		least, most := a.bounds()
		otherLeast, otherMost := b.bounds()
		return max(least, otherLeast) <= min(most, otherMost)
	}
	return sameJSON(a.Answer, b.Answer)
}

func (f Finding) bounds() (least, most int) {
	if json.Unmarshal(f.Answer, &least) == nil {
		return least, least
	}
	return f.AtLeast, cmp.Or(f.AtMost, math.MaxInt32)
}

// sameJSON compares values and not their spelling. Of objects it compares the
// members that both have: not every target lets every one be asked.
func sameJSON(a, b json.RawMessage) bool {
	first, second := membersOf(a), membersOf(b)
	if first != nil && second != nil {
		for name, v := range first {
			if other, there := second[name]; there && !reflect.DeepEqual(other, v) {
				return false
			}
		}
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// membersOf are the members of an object, nil where it is none.
func membersOf(answer json.RawMessage) (members map[string]any) {
	_ = json.Unmarshal(answer, &members) // an answer that is no object has no members
	return members
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
	e := evidenceOf(p.shown, rawcall.Clip(p.shown.Call.Body))
	return &Evidence{Request: p.redact(e.Request), Answer: p.redact(e.Answer)}
}

// evidenceOf shows an exchange, with body for what was sent.
func evidenceOf(x rawcall.Exchange, body string) *Evidence {
	answer := fmt.Sprint(x.Status)
	if wait := x.Header.Get("Retry-After"); wait != "" {
		answer += " Retry-After: " + rawcall.Clip(wait)
	}
	if x.Value != nil {
		answer += " " + string(jsonOf(shorten("", x.Value)))
	} else {
		answer += " no JSON"
	}
	return &Evidence{Request: strings.TrimSpace(x.Method + " " + x.Path + " " + body), Answer: answer}
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
			if identifier.MatchString(name) {
				short[name] = shorten(name, member)
			}
		}
		return short
	case string:
		if slices.Contains(telling, name) && identifier.MatchString(v) {
			return v
		}
	case bool, nil:
		return v
	}
	return "..."
}

// Markdown is a page for people: each question, the fake's answer, the
// target's, and where they differ.
func (o *Observation) Markdown() string {
	var rows, open strings.Builder
	known, different := 0, 0
	for _, q := range questions {
		found := o.Decisions[q.id]
		if !found.Known() {
			fmt.Fprintf(&open, "- %s (`%s`): %s\n", q.ask, q.id, cmp.Or(found.NotAsked, "not asked yet"))
			continue
		}
		known++
		mark := ""
		if !sameFinding(Finding{Answer: jsonOf(q.fake)}, found) {
			mark, different = " **differs**", different+1
		}
		fmt.Fprintf(&rows, "| %s | `%s` | `%s`%s | %s | %s |\n", q.ask, compact(q.fake), found, mark, found.Seen, cell(found.Evidence))
	}
	page := fmt.Sprintf("# How the service answers what the interface leaves open\n\n%d of %d questions answered, %d otherwise than the fake does by default. Spent: %s.\n",
		known, len(questions), different, o.Spent)
	page += "\n| Question | The fake | The service | Last seen | Seen in |\n|---|---|---|---|---|\n" + rows.String()
	if open.Len() > 0 {
		page += "\nNot answered:\n\n" + open.String()
	}
	if len(o.Traffic) > 0 {
		page += "\nSeen in traffic:\n\n"
	}
	for _, what := range slices.Sorted(maps.Keys(o.Traffic)) {
		page += fmt.Sprintf("- %s: %d, last on %s\n", what, o.Traffic[what].Count, o.Traffic[what].Seen)
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
