package observe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/atomicfile"
	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakenames"
	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// Observation says how a target answered the open questions. WriteFile writes its JSON,
// which fakeserver.Like reads. The package documentation says what it keeps of a service's
// answers.
type Observation struct {
	// Format is 1. Any other value in a file is an error of json.Unmarshal.
	Format int `json:"format"`
	// Decisions are the findings by the id of their question, such as
	// "metadata_cap".
	Decisions map[string]Finding `json:"decisions"`
	// Limits are the limits that Run measured, by the fake's names. Run measures "key_minute",
	// the requests that a key may make in a minute. The number is too small if the key made
	// other calls during the run. With only one key, Run takes a limit of about 120 for the
	// limit of the address (interface 8.1), and any other limit for the key's.
	Limits map[string]int `json:"limits,omitempty"`
	// Traffic counts observations of a Watcher that answer no question, such as "POST
	// /v1/agents 200" or "member region of POST /v1/agents 200".
	Traffic map[string]Sight `json:"traffic,omitempty"`
	// Spent is the sum of all runs so far.
	Spent Spend `json:"spent"`
}

// Finding is the answer to one question, or bounds of the answer, or the reason
// why there is none.
type Finding struct {
	// Answer is JSON; nil if the exact answer is not known.
	Answer json.RawMessage `json:"answer,omitempty"`
	// AtLeast and AtMost are bounds of an answer that is a number and not known
	// exactly. AtLeast 3000 for metadata_cap means that metadata of 3,000
	// characters was accepted. 0 means no bound.
	AtLeast int `json:"at_least,omitempty"`
	AtMost  int `json:"at_most,omitempty"`
	// Evidence is the last exchange that shows the answer; nil if there is none.
	Evidence *Evidence `json:"evidence,omitempty"`
	// Seen is the day on which the answer was last seen, in UTC, such as
	// "2026-01-31".
	Seen string `json:"seen,omitempty"`
	// Count is the number of calls of a Watcher that showed the answer; 0 for an
	// answer of Run.
	Count int `json:"count,omitempty"`
	// NotAsked says why Answer is nil: what the question needs, such as "needs a second
	// key", or how the target's answers were unclear, such as "no clear answer: POST
	// /v1/warmup answered 503". If Keep took Answer from an earlier observation, NotAsked
	// says why the later run has no answer. Otherwise NotAsked is empty if Answer is set.
	NotAsked string `json:"not_asked,omitempty"`
}

// Evidence is a short form of an exchange, without keys and without texts of yours.
type Evidence struct {
	Request string `json:"request"` // method, path, and at most 80 bytes of the body
	Answer  string `json:"answer"`  // status, Retry-After and a few members
}

// Sight says how often a Watcher saw something, and when it last saw it.
type Sight struct {
	Count int    `json:"count"` // answers that showed it
	Seen  string `json:"seen"`  // day of the last one, in UTC, such as "2026-01-31"
}

// The requests of a minute that interface 8.1 allows a key and an address.
const ofKey, ofAddress = 60, 120

// reported are the questions that an observation may answer: the open questions of the
// interface, and the one limit that Run measures.
var reported = slices.Concat(decisions.Asked, []decisions.Question{
	{ID: fakenames.KeyMinute, Text: "How many requests may a key make in a minute?", Default: ofKey},
})

// finding returns the answer to one of the reported questions.
func (o *Observation) finding(id string) Finding {
	if id != fakenames.KeyMinute {
		return o.Decisions[id]
	}
	if n, measured := o.Limits[id]; measured {
		return Finding{Answer: rawcall.JSONOf(n)}
	}
	return Finding{NotAsked: o.Decisions["windows"].NotAsked} // Run measures both together
}

// Known reports whether the finding has an answer or a bound.
func (f Finding) Known() bool { return f.Answer != nil || f.AtLeast > 0 || f.AtMost > 0 }

func today(now time.Time) string { return now.UTC().Format(time.DateOnly) }

// init makes the maps that a literal or a file may lack. Empty maps are not written.
func (o *Observation) init() {
	o.Format = 1
	if o.Decisions == nil {
		o.Decisions = map[string]Finding{}
	}
	if o.Limits == nil {
		o.Limits = map[string]int{}
	}
	if o.Traffic == nil {
		o.Traffic = map[string]Sight{}
	}
}

// UnmarshalJSON reads an Observation that json.Marshal wrote. A Format other than
// 1 is an error.
func (o *Observation) UnmarshalJSON(data []byte) error {
	type plain Observation
	if err := json.Unmarshal(data, (*plain)(o)); err != nil {
		return err
	}
	if o.Format != 1 {
		return fmt.Errorf("observe: the observation has another format: %d, not 1; write a new file with Run", o.Format)
	}
	return nil
}

// ReadFile reads an observation that WriteFile wrote. If the file does not exist,
// ReadFile returns an empty observation and no error. If it cannot be read, is not
// JSON or has another format, it returns an error; remove the file or write a new
// one with Run.
func ReadFile(path string) (*Observation, error) {
	o := new(Observation)
	defer o.init() // after the file is read, so that a file without a format is refused
	return o, atomicfile.ReadJSON(path, o)
}

// WriteFile writes the observation to a file as JSON. It replaces an existing file in one
// step; to take over the file's answers, call Keep first. Any error comes from the file
// system.
func (o *Observation) WriteFile(path string) error { return atomicfile.WriteJSON(path, o) }

// Keep adds to o the answers of an earlier observation that o does not have: whole
// answers, and members of answers that are objects. If both have an answer, o's answer
// stays. Counts and Spent become the sum of both. Keep does not change earlier, and
// writes no file. Keep, Missing, Drift and Unchanged treat a nil earlier as an
// observation without answers.
func (o *Observation) Keep(earlier *Observation) {
	o.init()
	earlier = cmp.Or(earlier, new(Observation))
	for id, then := range earlier.Decisions {
		o.Decisions[id], _ = o.Decisions[id].mergedWith(then)
	}
	for name, n := range earlier.Limits {
		o.Limits[name] = cmp.Or(o.Limits[name], n)
	}
	for what, then := range earlier.Traffic {
		o.Traffic[what] = Sight{o.Traffic[what].Count + then.Count, max(o.Traffic[what].Seen, then.Seen)}
	}
	o.Spent = o.Spent.Plus(earlier.Spent)
}

// mergedWith returns f, completed with the parts of an earlier finding that f does not
// have. unseen lists these parts: "" means the whole answer, other values are members of an
// object. If there are any, Seen is the earlier day.
func (f Finding) mergedWith(then Finding) (all Finding, unseen []string) {
	old, members := membersOf(then.Answer), membersOf(f.Answer)
	switch {
	case !then.Known():
		return f, nil
	case !f.Known(), f.Answer == nil && then.Answer != nil && sameFinding(then, f): // a bound does not replace an answer
		then.NotAsked = f.NotAsked
		return then, []string{""}
	case sameFinding(then, f):
		f.Count += then.Count
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if _, seen := members[name]; members != nil && !seen {
			members[name], unseen = old[name], append(unseen, name)
		}
	}
	if len(unseen) > 0 {
		f.Answer, f.Seen = rawcall.JSONOf(members), then.Seen
	}
	return f, unseen
}

// Missing returns a line for each question that an earlier observation of the same target
// answers and o does not, and for a limit that only the earlier one measured. The line has
// the day on which the answer was last seen, if it is known, and the reason why o has none.
func (o *Observation) Missing(earlier *Observation) (lines []string) {
	earlier = cmp.Or(earlier, new(Observation))
	for _, q := range reported {
		then, now := earlier.finding(q.ID), o.finding(q.ID)
		_, unseen := now.mergedWith(then)
		for _, member := range unseen {
			lines = append(lines, fmt.Sprintf("%s (last seen %s): %s", strings.TrimSuffix(q.ID+"."+member, "."),
				cmp.Or(then.Seen, "on an unknown day"), cmp.Or(now.NotAsked, "not asked")))
		}
	}
	return lines
}

// Drift returns a line in words for each question that o answers differently from an
// earlier observation of the same target, and for each limit with another number. It leaves
// out questions that only one of the two answers; see Missing.
func (o *Observation) Drift(earlier *Observation) (changes []string) {
	changes, _ = o.compare(earlier)
	return changes
}

// Unchanged returns the number of questions and limits to which o and earlier have the
// same answer.
func (o *Observation) Unchanged(earlier *Observation) int {
	_, unchanged := o.compare(earlier)
	return unchanged
}

// compare returns the results of Drift and Unchanged.
func (o *Observation) compare(earlier *Observation) (changes []string, unchanged int) {
	earlier = cmp.Or(earlier, new(Observation))
	for _, q := range reported {
		switch then, now := earlier.finding(q.ID), o.finding(q.ID); {
		case !then.Known() || !now.Known():
		case sameFinding(then, now):
			unchanged++
		default:
			changes = append(changes, fmt.Sprintf("%s: %s It was %s, it is %s.", q.ID, q.Text, then, now))
		}
	}
	return changes, unchanged
}

// Markdown returns a page for people: each question with the fake's answer and the
// target's, marked if they differ, the questions without an answer, and Traffic. If the
// run had to stop, the page does not list the remaining questions.
func (o *Observation) Markdown() string {
	var rows, open strings.Builder
	known, different := 0, 0
	for _, q := range reported {
		found := o.finding(q.ID)
		if !found.Known() {
			if found.NotAsked != notReached && q.ID != fakenames.KeyMinute {
				fmt.Fprintf(&open, "- %s (`%s`): %s\n", q.Text, q.ID, cmp.Or(found.NotAsked, "no call has shown it; Run asks it"))
			}
			continue
		}
		known++
		mark := ""
		if !sameFinding(Finding{Answer: rawcall.JSONOf(q.Default)}, found) {
			mark, different = " **differs**", different+1
		}
		fmt.Fprintf(&rows, "| %s | `%s` | `%s`%s | %s | %s |\n", q.Text, compact(q.Default), found, mark, found.Seen, cell(found.Evidence))
	}
	page := fmt.Sprintf("# How the service answers what the interface leaves open\n\n%d of %d questions answered, %d otherwise than the fake does by default. Spent: %s.\n",
		known, len(reported), different, o.Spent)
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

// cell returns the evidence for a cell of a table, where a bar would end the cell.
func cell(e *Evidence) string {
	if e == nil {
		return ""
	}
	return "`" + strings.NewReplacer("|", "/", "`", "'").Replace(e.Request+" -> "+e.Answer) + "`"
}

// String returns the answer as JSON, or its bounds in words, such as "at least
// 3000", or "unknown".
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

// sameFinding reports whether two findings can both be right about one service. Two exact
// answers must be equal; objects must be equal in the members that both have. If one
// finding is a bound, an exact number counts as a range of one number, and the ranges
// must overlap.
func sameFinding(a, b Finding) bool {
	if a.Answer == nil || b.Answer == nil {
		least, most := a.bounds()
		otherLeast, otherMost := b.bounds()
		return max(least, otherLeast) <= min(most, otherMost)
	}
	return sameJSON(a.Answer, b.Answer)
}

// bounds returns the range of a finding that is a number. An exact number is both bounds.
func (f Finding) bounds() (least, most int) {
	if json.Unmarshal(f.Answer, &least) == nil {
		return least, least
	}
	return f.AtLeast, cmp.Or(f.AtMost, math.MaxInt32)
}

// sameJSON compares values and not their spelling. In objects it compares the members
// that both have, because not every target can be asked for every member.
func sameJSON(a, b json.RawMessage) bool {
	first, second := membersOf(a), membersOf(b)
	for name, v := range first {
		if other, there := second[name]; there && !reflect.DeepEqual(other, v) {
			return false
		}
	}
	var x, y any
	return first != nil && second != nil || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// membersOf returns the members of an object; nil for any other value.
func membersOf(answer json.RawMessage) (members map[string]any) {
	_ = json.Unmarshal(answer, &members) // a value other than an object has no members
	return members
}

// evidenceOf returns an exchange as evidence. body is the request body to show.
func evidenceOf(x rawcall.Exchange, body string) *Evidence {
	answer := fmt.Sprint(x.Status)
	if wait := x.Header.Get("Retry-After"); identifier.MatchString(wait) {
		answer += " Retry-After: " + wait
	}
	members := map[string]any{}
	for _, path := range evidenceMembers {
		v := x.At(path)
		if text, _ := v.(string); identifier.MatchString(text) || v == true || v == false {
			members[path] = v
		}
	}
	return &Evidence{Request: strings.TrimSpace(x.Method + " " + x.Path + " " + body), Answer: answer + " " + string(rawcall.JSONOf(members))}
}

// evidenceMembers lists the members that evidence shows if they are identifiers, times or
// booleans.
var evidenceMembers = []string{"error", "limit_key", "status", "sms.status", "mode", "ok", "warmed", "byok.provider", "created_at", "updated_at"}

// compact returns a value as JSON for a cell of a table, where a bar would end the cell.
func compact(v any) string { return strings.ReplaceAll(string(rawcall.JSONOf(v)), "|", "/") }

// identifier matches identifiers and times. label also matches names of a service or a
// limit, which may have several words. Any other text may be a person's.
var (
	identifier = regexp.MustCompile(`^[A-Za-z0-9_.:+-]{1,64}$`)
	label      = regexp.MustCompile(`^[A-Za-z0-9_.:+/-][A-Za-z0-9_.:+/ -]{0,63}$`)
)

// notReached is the reason for each question that was not asked because the run had to stop.
const notReached = "needs a target that answers as the interface says"
