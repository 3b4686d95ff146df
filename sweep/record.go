package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakeadmin"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/sweep/internal/disk"
)

// Run is what a run of [Test] leaves, for a check of the user (see [WithCheck]).
type Run struct {
	// Plan is the name of the plan, or of the deaths; "" for the run without faults.
	Plan string
	// Fake is the service as the run has left it, and Dir the folder.
	Fake *fakeserver.Server
	Dir  string
	// Calls are the calls of the first execution of the scenario, and
	// Restarted those after the restarts.
	Calls, Restarted []Call
	// Reports are the errors that Env.Reports was given, in all executions. An error
	// that errors.Join has made counts as its parts.
	Reports []error
	// Told is all that the application said in the first execution, reports
	// included, and ToldAfter what it said after the restarts.
	Told, ToldAfter string
	// Lasted is how long the first execution took by the fake's clock.
	Lasted time.Duration
}

// stages are the executions of a run, and how long the application is down before each:
// the first execution, and three stages. A supervisor starts it after half a minute;
// after half an hour it still meets the limits of the hour; after a day, and a minute
// so that whatever lasts a day is over, no limit is used up any more.
var stages = []struct {
	down  time.Duration
	later string
}{{}, {30 * time.Second, "half a minute"}, {30 * time.Minute, "half an hour"}, {24*time.Hour + time.Minute, "a day"}}

// lastStage is the stage of the restart after a day.
var lastStage = len(stages) - 1

// run is a row of executions: the first, which meets a fault or dies, and the restarts
// after it.
type run struct {
	name    string // of its plan, or of its deaths; "" for the baseline
	plan    *plan  // nil: no fault
	records []*record

	whole   *run // for a death that tore a file: the run after a death just before that write
	excused bool // a report came before the death

	// Of the baseline alone: the same executions once more, and patterns of the lines
	// that the two say with different words.
	repeat []*record
	varied []string
}

// record is what one execution of the scenario did, and what it left. Of a process that
// died it is the part before its death.
type record struct {
	baseline *run
	stage    int // 0: the first execution; 1 to 3: the restarts after it
	fake     *fakeserver.Server
	dir      string

	begun       time.Time // by the fake's clock
	calls       []*Call
	points      []string    // that were reached, by name and number
	failedPoint string      // the last that failed and was not passed since, by name
	statements  []statement // what the application said
	cleared     bool        // a stored provider key was cleared
	requests    int         // that left the client and were not refused with 429
	ended       string      // why the scenario was ended; "" where it ended by itself
	died        string      // where the process died; "" where it did not
	stalled     string      // what the watchdog saw
	panicked    string
	leaked      []string // goroutines that were still there afterwards
	lasted      time.Duration
	// deadKeyRequests are the most answers of 401 and 402 in a row after which a
	// goroutine sent another request.
	deadKeyRequests int
	maxRequests     int           // see Quota
	maxLasted       time.Duration // of virtual time

	left    persisted // what the next execution finds
	moments []moment  // at which the process might die, in order
}

// baselines returns the executions of the baseline to compare an execution with. A
// restart may have to do what a first execution does. It returns nil while the baseline
// is made.
func (rec *record) baselines() []*record {
	if len(rec.baseline.records) == 0 {
		return nil
	}
	return []*record{rec.baseline.records[0], rec.baseline.records[rec.stage], rec.baseline.repeat[0], rec.baseline.repeat[rec.stage]}
}

// persisted is all that outlives a process: the service, the folder, the time.
type persisted struct {
	dir     disk.Image
	service []byte            // as fakeserver.WriteState writes it
	elapsed time.Duration     // since the first execution began
	gone    map[string]bool   // agents that a plan has removed, or said to be unknown
	known   map[string]string // what each agent is, by its identifier; which provider key it is, by its fingerprint
	state   state
}

// nothingPersisted is what the first execution finds.
var nothingPersisted = persisted{gone: map[string]bool{}, known: map[string]string{}}

// key is equal where a restart would find the same.
func (p persisted) key() string { return p.state.key() + p.dir.String() }

// moment is a point in time at which the process might die.
type moment struct {
	name   string // SendMessage_1/dies_arrived
	when   string // after SendMessage_1 had arrived
	whole  string // for a torn state: the key of what a death before the write leaves
	record record // what was done by then
}

// snapshot copies what a process that dies now has done, and leaves. Statements and
// attempts are only ever added, so that the copy may share their memory.
func (rec *record) snapshot(left persisted) record {
	r := *rec
	r.calls, r.moments, r.left = nil, nil, left
	for _, c := range rec.calls {
		one := *c
		r.calls = append(r.calls, &one)
	}
	return r
}

// way is how the application said something.
type way int

const (
	said     way = iota // nothing is wrong
	reported            // by Env.Reports
	asserted            // by a failed assertion, or a panic
	warned              // in any other way; it counts if the baseline does not say the same
)

// statement is one thing that the application said.
type statement struct {
	way  way
	text string
	err  error // of Env.Reports
}

// isFrom reports whether what was said is the error of a call.
func (t statement) isFrom(c *Call) bool { return c.failed() && errors.Is(t.err, c.Err) }

// contains looks for a subject as whole words: "Order 10" is not about "Order 1".
func (t statement) contains(subject string) bool {
	const outside = `(?:^|$|[^\pL\pN])` // of a word
	return strings.Contains(t.text, subject) && regexp.MustCompile(outside+regexp.QuoteMeta(subject)+outside).MatchString(t.text)
}

// said returns all that the application said, as text.
func (rec *record) said() (all string) {
	for _, t := range rec.statements {
		if t.text != "" {
			all += strings.TrimRight(t.text, "\n") + "\n"
		}
	}
	return all
}

// volatile matches what depends on when something is said: durations, times, and the
// numbers that the fake gives to agents and answers.
var volatile = regexp.MustCompile(`\b(?:(?:\d+(?:\.\d+)?(?:ns|µs|ms|s|m|h))+\b|` +
	`\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-][\d:]+)?)?|\d\d:\d\d(?::\d\d(?:\.\d+)?)?|(?:agent|trace)_\d+)`)

// word matches a word of a line, or a value of a record.
var word = regexp.MustCompile(`[^\s="',;()\[\]]+`)

// commonPattern returns the pattern of two lines: "*" for each word in which they differ,
// "#" if both have digits there; "" where more than words differ. It is the pattern of a
// line and a pattern that the line fits as well.
func commonPattern(a, b string) string {
	others, i := word.FindAllString(b, -1), -1
	if word.ReplaceAllString(a, "*") != word.ReplaceAllString(b, "*") {
		return ""
	}
	const digits = "0123456789#"
	return word.ReplaceAllStringFunc(a, func(w string) string {
		i++
		switch {
		case w == others[i]:
			return w
		case strings.ContainsAny(w, digits) && strings.ContainsAny(others[i], digits):
			return "#"
		}
		return "*"
	})
}

// normalized returns a line without the words that vary even if nothing fails: it is equal
// for lines that say the same.
func (r *run) normalized(line string) string {
	line = volatile.ReplaceAllString(line, "#")
	for _, pattern := range r.varied {
		if commonPattern(line, pattern) == pattern {
			line = pattern
		}
	}
	return line
}

// learnVariation learns which words vary, from two executions that should say the same.
// enough says whether the pattern of two lines has enough in common. Two lines of which
// it does not are returned; nil if there are none.
func (r *run) learnVariation(a, b *record, enough func(pattern string) bool) (unlike []string) {
	others := b.newStatements(a)
	for _, t := range a.newStatements(b) {
		line := r.normalized(t.text)
		pattern := func(o statement) string { return commonPattern(line, r.normalized(o.text)) }
		if len(others) == 0 {
			break
		}
		other := slices.MaxFunc(others, func(x, y statement) int { return len(pattern(x)) - len(pattern(y)) })
		if !enough(pattern(other)) {
			unlike = []string{line, other.text}
			continue // a line after it may have a word in common with another
		}
		r.varied = append(r.varied, pattern(other))
		others = slices.DeleteFunc(others, func(o statement) bool { return o.text == other.text })
	}
	return unlike
}

// reports returns the statements that something is wrong which the baseline does not have,
// or not as often.
func (rec *record) reports() []statement { return rec.newStatements(rec.baselines()...) }

// newStatements returns the statements that something is wrong which the others do not have
// as often, or which quote the error of a call that does not usually fail.
func (rec *record) newStatements(others ...*record) (fresh []statement) {
	usually := mostOften(others, func(u *record) []statement { return u.statements })
	for _, t := range rec.statements {
		key := rec.key(t)
		if usually[key]--; t.way != said && (usually[key] < 0 || rec.quotesFailure(t)) {
			fresh = append(fresh, t)
		}
	}
	return fresh
}

// quotesFailure reports whether a statement has the error of a call that does not usually
// fail.
func (rec *record) quotesFailure(t statement) bool {
	return slices.ContainsFunc(rec.calls, func(c *Call) bool {
		return c.failed() && strings.Contains(t.text, c.Err.Error()) && !rec.usuallyFails(c)
	})
}

// mostOften counts statements by their keys: how often each comes in the execution in
// which it comes most often.
func mostOften(records []*record, statements func(*record) []statement) map[string]int {
	most := map[string]int{}
	for _, rec := range records {
		count := map[string]int{}
		for _, t := range statements(rec) {
			key := rec.key(t)
			count[key]++
			most[key] = max(most[key], count[key])
		}
	}
	return most
}

// key is equal for statements that say the same.
func (rec *record) key(t statement) string {
	return fmt.Sprint(t.way, " ", rec.baseline.normalized(t.text))
}

// usuallyFails reports whether the call of this name fails in the baseline too.
func (rec *record) usuallyFails(c *Call) bool {
	return slices.ContainsFunc(rec.baselines(), func(u *record) bool {
		return slices.ContainsFunc(u.calls, func(other *Call) bool { return other.Name == c.Name && other.failed() })
	})
}

// clears reports whether the last change that the application tried to make to the stored
// provider key was to clear it.
func (rec *record) clears() bool {
	changes := slices.DeleteFunc(slices.Clone(rec.calls), func(c *Call) bool { return c.spec != spec.SetBYOK && c.spec != spec.ClearBYOK })
	return len(changes) > 0 && changes[len(changes)-1].spec == spec.ClearBYOK
}

// when begins a sentence about an execution.
func (rec *record) when() string {
	if rec.stage == 0 {
		return ""
	}
	return fmt.Sprintf("after the restart %s later, ", stages[rec.stage].later)
}

func (r *run) last() *record       { return r.records[len(r.records)-1] }
func (r *run) baseline() []*record { return r.records[0].baseline.records }
func (r *run) died() bool {
	return slices.ContainsFunc(r.records, func(rec *record) bool { return rec.died != "" })
}

// calls returns the calls of all executions.
func (r *run) calls() (all []*Call) {
	for _, rec := range r.records {
		all = append(all, rec.calls...)
	}
	return all
}

// reports returns the reports of all executions.
func (r *run) reports() (all []statement) {
	for _, rec := range r.records {
		all = append(all, rec.reports()...)
	}
	return all
}

// public returns the run as a check of the user sees it.
func (r *run) public() *Run {
	public := &Run{Plan: r.name, Fake: r.last().fake, Dir: r.last().dir, Lasted: r.records[0].lasted}
	for i, rec := range r.records {
		calls, told := &public.Calls, &public.Told
		if i > 0 {
			calls, told = &public.Restarted, &public.ToldAfter
		}
		for _, c := range rec.calls {
			*calls = append(*calls, *c)
		}
		for _, t := range rec.statements {
			if t.err != nil {
				public.Reports = append(public.Reports, t.err)
			}
		}
		*told += rec.said()
	}
	return public
}

// state is what the service holds.
type state struct {
	ids    []string // of the agents that no plan took away
	agents []string // each without identifiers and times, a member in each line
	// copies is how often each subject is there: a text in the conversation that has it most
	// often, a customer_ref among all agents that no plan took away.
	copies map[subject]int
	sent   int    // messages to all agents
	byok   string // the stored configuration, a member in each line; "" where there is none
	keys   string // the API keys and what became of them
}

// subject is what a call is about: the text of a message, or the customer_ref of a
// creation.
type subject struct {
	endpoint *spec.Endpoint
	text     string
}

// subjects returns what the service holds, messages first.
func (s state) subjects() []subject {
	return slices.SortedFunc(maps.Keys(s.copies), func(a, b subject) int {
		return cmp.Or(strings.Compare(b.endpoint.Name, a.endpoint.Name), strings.Compare(a.text, b.text))
	})
}

// stateOf reads what the service holds. before has what earlier executions left.
func stateOf(fake *fakeserver.Server, before persisted) state {
	s := state{copies: map[subject]int{}}
	for _, a := range fake.Agents() {
		if !before.gone[a.ID] {
			s.ids = append(s.ids, a.ID)
			if a.CustomerRef != "" {
				s.copies[subject{spec.CreateAgent, a.CustomerRef}]++
			}
		}
		var texts []string
		count := map[subject]int{}
		for _, e := range fake.Conversation(a.ID) {
			texts = append(texts, e.UserRef+":"+e.Text)
			text := subject{spec.SendMessage, e.Text}
			count[text]++
			s.copies[text] = max(s.copies[text], count[text])
		}
		s.sent += len(texts)
		slices.Sort(texts)
		if a.SMS != nil {
			a.SMS.PhoneNumber = "" // follows from the agent's number
		}
		s.agents = append(s.agents, fmt.Sprintf("customer_ref %q\nsystem_prompt %q\nmetadata %q\nllm %q\nsms %q\nmessage %q",
			a.CustomerRef, a.SystemPrompt, a.Metadata, a.LLM, a.SMS, texts))
	}
	for _, k := range fakeadmin.Of[fakeserver.Call](fake).Keys() {
		s.keys += fmt.Sprintf("%s %s %v;", k.Label, k.Plan, k.Revoked)
	}
	if b, set := fake.BYOK(fake.Key()); set {
		s.byok = fmt.Sprintf("byok.provider %q\nbyok.base_url %q\nbyok.model %q\nbyok.label %q\nbyok.api_key %q",
			b.Provider, b.BaseURL, b.Model, b.Label, before.known["byok "+b.Fingerprint])
	}
	return s
}

// key is equal for states between which an application sees no difference.
func (s state) key() string { return fmt.Sprintf("%q %q %q %q\n", s.ids, s.agents, s.byok, s.keys) }

// unlike names what differs between two states, without anybody's words; "" for nothing.
func (s state) unlike(usual state) string {
	got, want := s.parts(), usual.parts()
	for i, part := range got {
		switch name, _, _ := strings.Cut(part, " "); {
		case part == want[i]:
		case i < 3:
			return part + " instead of " + want[i]
		default:
			return "another " + name
		}
	}
	return ""
}

// parts returns three counts, and the members of all agents and of the BYOK configuration.
func (s state) parts() []string {
	counts := []string{plural(len(s.agents), "agent"), plural(s.sent, "message"), plural(min(1, len(s.byok)), "provider key")}
	things := append(slices.Sorted(slices.Values(s.agents)), s.byok)
	return append(counts, strings.Split(strings.Join(things, "\n"), "\n")...)
}

// plural counts things in words: "1 call", "2 calls".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
