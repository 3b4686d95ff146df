// Package observe finds out how a service answers what the interface document
// leaves open: names, forms of times, orders of checks, how limits count.
//
// [Run] makes calls to a service to find that out, within a budget. [Watch] makes
// no calls: it learns from the calls that a program makes anyway. Both return an
// [Observation] with a [Finding] for each open question. fakeserver.Like reads its
// JSON file and makes the fake answer in the same way, [Observation.Markdown] shows
// it as a page, and [Observation.Drift] shows what changed since an earlier one.
// The ids and words of all questions are listed by Decisions of a
// fakeserver.Server, and answers are compared with the fake's defaults.
//
//	o, err := observe.Run(ctx, observe.Target{BaseURL: baseURL, Key: key}, observe.DefaultBudget())
//	if err != nil {
//		log.Print(err) // o has what was found before
//	}
//	err = o.WriteFile("observed.json")
//
// "Interface 8.1" in these pages names a section of the service's interface
// document.
//
// An observation holds no key, no id and no text that a person wrote. Only answers
// with a documented body count: a proxy's HTML page, an empty body and an error
// that the interface does not list answer no question.
package observe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Run finds out how target answers the questions that the interface leaves
// open, with the calls that budget allows. The zero budget means [DefaultBudget],
// which stores no provider key: a stored one would overwrite the one that the key
// already has.
//
// A question that was not asked or got no clear answer has a [Finding] that says
// why in NotAsked, also if the target hangs or gives undocumented answers.
//
// Run always returns an Observation with what it found. It also returns an error
// if ctx ends, if the target refuses the key (401 or 402: use a valid key on an
// active plan), or if three calls in a row get no documented answer (check BaseURL
// and whether the service is up). After that, [Observation.Continue] asks the
// questions that are left.
func Run(ctx context.Context, target Target, budget Spend) (*Observation, error) {
	o := &Observation{}
	return o, o.Continue(ctx, target, budget)
}

// Continue asks the questions that have no answer yet, as [Run] does, and adds
// the answers to o. It spends at most what [Observation.Preview] returns. Its
// errors are the errors of Run.
func (o *Observation) Continue(ctx context.Context, target Target, budget Spend) error {
	o.init()
	p := o.newProbe(ctx, target, budget)
	p.budget = o.Preview(target, budget)
	defer func() { o.Spent = o.Spent.Plus(p.spent) }()
	for _, q := range questions {
		if q.find != nil && !o.has(q) {
			p.ask(q)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return p.stopped
}

// Preview returns what Continue spends at most, without making a call. If a
// question that is left uses up the key's limit on requests in a minute, that
// includes all requests of the budget: how many it takes depends on the limit,
// which may be larger than a preview key's.
func (o *Observation) Preview(target Target, budget Spend) Spend {
	p := o.newProbe(context.Background(), target, budget)
	most := Spend{Wait: p.budget.Wait} // a limit is waited for wherever it is met
	for _, q := range questions {
		if q.find != nil && !o.has(q) && p.lacks(q) == "" {
			most = most.Plus(q.costs)
			if q.fillsMinute {
				most.Requests = p.budget.Requests
			}
		}
	}
	return most.atMost(p.budget)
}

// has reports whether all questions that q answers have an answer.
func (o *Observation) has(q question) bool {
	return !slices.ContainsFunc(q.ids(), func(id string) bool { return o.Decisions[id].Answer == nil })
}

// Missing returns a line for each question that an earlier observation of the same
// target answers and o does not, with the day on which the answer was last seen and
// the reason why o has none.
func (o *Observation) Missing(earlier *Observation) (lines []string) {
	for _, q := range questions {
		then, now := earlier.Decisions[q.id], o.Decisions[q.id]
		_, unseen := now.with(then)
		for _, member := range unseen {
			lines = append(lines, fmt.Sprintf("%s (last seen %s): %s", strings.TrimSuffix(q.id+"."+member, "."),
				cmp.Or(then.Seen, "on an unknown day"), cmp.Or(now.NotAsked, "not asked")))
		}
	}
	return lines
}

// Drift returns a line in words for each question to which o has another answer
// than an earlier observation of the same target. Questions that only one of them
// answers are left out: see Missing.
func (o *Observation) Drift(earlier *Observation) (changes []string) {
	changes, _ = o.compare(earlier)
	return changes
}

// Unchanged returns the number of questions to which o and earlier have the same
// answer.
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
			changes = append(changes, fmt.Sprintf("%s: %s It was %s, it is %s.", q.id, q.words, then, now))
		}
	}
	return changes, unchanged
}

// Markdown returns a page for people: each question with the fake's answer and the
// target's, marked if they differ, the questions without an answer, and Traffic.
func (o *Observation) Markdown() string {
	var rows, open strings.Builder
	known, different := 0, 0
	for _, q := range questions {
		found := o.Decisions[q.id]
		if !found.Known() {
			fmt.Fprintf(&open, "- %s (`%s`): %s\n", q.words, q.id, cmp.Or(found.NotAsked, "not asked yet"))
			continue
		}
		known++
		mark := ""
		if !sameFinding(Finding{Answer: jsonOf(q.fake)}, found) {
			mark, different = " **differs**", different+1
		}
		fmt.Fprintf(&rows, "| %s | `%s` | `%s`%s | %s | %s |\n", q.words, compact(q.fake), found, mark, found.Seen, cell(found.Evidence))
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
