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

// Run is the result of a run of [Test], for a check of the user (see [WithCheck]).
type Run struct {
	// Plan is the name of the plan, or of the deaths; "" for the run without faults.
	Plan string
	// Fake and Dir are the service and the folder at the end of the run.
	Fake *fakeserver.Server
	Dir  string
	// Calls are the calls of the first execution of the scenario, and Restarted the calls of
	// the restarts.
	Calls, Restarted []Call
	// Reports are the errors that were passed to Env.Reports, in all executions. An error
	// from errors.Join counts as its parts.
	Reports []error
	// Told is the whole text that the application said in the first execution, including
	// reports. ToldAfter is the text of the restarts.
	Told, ToldAfter string
	// Lasted is how long the first execution took by the fake's clock.
	Lasted time.Duration
}

// stages are the executions of a run, with the time for which the application is down
// before each: the first execution, and three restarts. After half a minute a supervisor
// would restart the application. After half an hour the limits per hour are still used
// up. After a day no limit is used up. An extra minute makes sure that everything that
// lasts a day is over.
var stages = []struct {
	down  time.Duration
	later string
}{{}, {30 * time.Second, "half a minute"}, {30 * time.Minute, "half an hour"}, {24*time.Hour + time.Minute, "a day"}}

// lastStage is the stage of the restart after a day.
var lastStage = len(stages) - 1

// run is a series of executions: the first, which meets a fault or dies, and the
// restarts.
type run struct {
	name    string // the name of its plan, or of its deaths; "" for the baseline
	plan    *plan  // nil: no fault
	records []*record

	whole   *run // for a death in the middle of a write: the run after a death just before that write
	excused bool // a report came before the death

	// Only of the baseline: the same executions a second time, patterns of the lines in
	// which the two differ, and whether messages have the same order in both and cannot race.
	repeat  []*record
	varied  []string
	ordered bool
}

// record holds the actions of one execution of the scenario, and the state that it left.
// If the process died, the record ends at the death.
type record struct {
	baseline *run
	stage    int // 0: the first execution; 1 to 3: the restarts after it
	fake     *fakeserver.Server
	dir      string

	begun       time.Time // by the fake's clock
	calls       []*Call
	points      []string    // the points that were reached, by name and number
	failedPoint string      // the name of the last point that failed and was not passed later
	statements  []statement // the texts of the application
	unended     []byte      // the beginning of a line of Env.Output
	cleared     bool        // a stored provider key was cleared
	requests    int         // requests that left the client and were not refused with 429
	ended       string      // why the scenario was ended; "" if it ended by itself
	died        string      // where the process died; "" if it did not
	stalled     string      // why the watchdog ended the execution
	panicked    string
	leaked      []string // goroutines that still ran afterwards
	lasted      time.Duration
	// deadKeyRequests is the largest number of answers 401 and 402 in a row after which a
	// goroutine sent another request.
	deadKeyRequests int
	maxRequests     int           // see Quota
	maxLasted       time.Duration // virtual time

	left    persisted // the state that the next execution finds
	moments []moment  // the moments at which the process might die, in order
}

// usualStages returns the executions of the baseline with which to compare this execution.
// A restart is also compared with the first execution, whose work it may have to do.
// usualStages returns nil before the baseline is complete.
func (rec *record) usualStages() []*record {
	if len(rec.baseline.records) == 0 {
		return nil
	}
	return []*record{rec.baseline.records[0], rec.baseline.records[rec.stage], rec.baseline.repeat[0], rec.baseline.repeat[rec.stage]}
}

// persisted is the state that outlives a process: the service, the folder, the time.
type persisted struct {
	dir     disk.Image
	service []byte            // as fakeserver.WriteState writes it
	elapsed time.Duration     // since the first execution began
	gone    map[string]bool   // agents that a plan has removed, or for which a fault answered 404
	known   map[string]string // descriptions of agents by their identifiers, provider keys by their fingerprints, beginnings of calls' errors
	state   state
}

// nothingPersisted is the state that the first execution finds.
var nothingPersisted = persisted{gone: map[string]bool{}, known: map[string]string{}}

// key is equal for states between which a restart sees no difference.
func (p persisted) key() string { return p.state.key() + p.dir.String() }

// moment is a point in time at which the process might die.
type moment struct {
	name   string // SendMessage_1/dies_arrived
	when   string // after SendMessage_1 had arrived
	whole  string // for a torn state: the key of the state that a death before the write leaves
	record record // the record up to this moment
}

// snapshot copies the record of a process that dies now and leaves left. Statements and
// attempts are only appended, so the copy may share their memory.
func (rec *record) snapshot(left persisted) record {
	r := *rec
	r.calls, r.moments, r.left = nil, nil, left
	r.endLine()
	for _, c := range rec.calls {
		one := *c
		r.calls = append(r.calls, &one)
	}
	return r
}

// way says how the application said something.
type way int

const (
	said     way = iota // nothing is wrong
	reported            // with Env.Reports
	asserted            // with a failed assertion, or a panic
	warned              // in any other way; it counts unless the baseline says the same
)

// statement is a text of the application.
type statement struct {
	way  way
	text string
	err  error // the error given to Env.Reports
}

// isFrom reports whether the statement is the error of a call.
func (t statement) isFrom(c *Call) bool { return c.failed() && errors.Is(t.err, c.Err) }

// contains looks for a subject as whole words: "Order 10" is not about "Order 1".
func (t statement) contains(subject string) bool {
	const outside = `(?:^|$|[^\pL\pN])` // the end of a word
	return strings.Contains(t.text, subject) && regexp.MustCompile(outside+regexp.QuoteMeta(subject)+outside).MatchString(t.text)
}

// endLine makes a statement of a line without a line feed: the application has printed it.
func (rec *record) endLine() {
	if len(rec.unended) > 0 {
		rec.statements = append(slices.Clip(rec.statements), printed(string(rec.unended), rec.left.known))
		rec.unended = nil
	}
}

// printed returns a line of a log or of the output as a statement. known has the errors of
// calls.
func printed(line string, known map[string]string) statement {
	t := statement{way: said, text: strings.TrimSpace(line)}
	level, isRecord := strings.CutPrefix(line, "level=")
	if strings.HasPrefix(level, "WARN") || strings.HasPrefix(level, "ERROR") {
		t.way = warned
	}
	for text := range known {
		if !isRecord && errorStart.MatchString(text) && strings.Contains(line, text) {
			t.way = warned
		}
	}
	return t
}

// errorStart matches the beginning of a call's error, which stays the same if the
// application wraps, unwraps or shortens the error, or prints it with quotation marks.
var errorStart = regexp.MustCompile(`^agentmessaging: [^:]+`)

// said returns all texts of the application as one text.
func (rec *record) said() (all string) {
	for _, t := range rec.statements {
		if t.text != "" {
			all += strings.TrimRight(t.text, "\n") + "\n"
		}
	}
	return all
}

// volatile matches words that depend on the time of a statement: durations, times, and
// the numbers that the fake gives to agents and answers.
var volatile = regexp.MustCompile(`\b(?:(?:\d+(?:\.\d+)?(?:ns|µs|ms|s|m|h))+\b|` +
	`\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-][\d:]+)?)?|\d\d:\d\d(?::\d\d(?:\.\d+)?)?|(?:agent|trace)_\d+)`)

// word matches a word of a line, or a value of a record.
var word = regexp.MustCompile(`[^\s="',;()\[\]]+`)

// commonPattern returns the pattern of two lines: "*" for each word in which they differ,
// "#" if both have digits there. It returns "" if more than words differ. One of the
// lines may itself be a pattern.
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

// normalized returns a line without the words that vary even if nothing fails, so that
// lines with the same meaning become equal.
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
// enough says whether a pattern keeps enough of its two lines. If it does not,
// learnVariation returns the two lines; otherwise nil.
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
			continue // a later line may match another one better
		}
		r.varied = append(r.varied, pattern(other))
		others = slices.DeleteFunc(others, func(o statement) bool { return o.text == other.text })
	}
	return unlike
}

// reports returns the statements that count as reports: the baseline does not have them,
// or not as often.
func (rec *record) reports() []statement { return rec.newStatements(rec.usualStages()...) }

// newStatements returns the statements about a problem that the others do not have as
// often, or that quote the error of a call that does not usually fail.
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

// mostOften counts statements by their keys. The count is from the execution in which the
// statement comes most often.
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

// key is equal for statements with the same meaning.
func (rec *record) key(t statement) string {
	return fmt.Sprint(t.way, " ", rec.baseline.normalized(t.text))
}

// usuallyFails reports whether the call of this name fails in the baseline too.
func (rec *record) usuallyFails(c *Call) bool {
	return slices.ContainsFunc(rec.usualStages(), func(u *record) bool {
		return slices.ContainsFunc(u.calls, func(other *Call) bool { return other.Name == c.Name && other.failed() })
	})
}

// clears reports whether the last attempt of the application to change the stored
// provider key was to clear it.
func (rec *record) clears() bool {
	changes := slices.DeleteFunc(slices.Clone(rec.calls), func(c *Call) bool { return c.spec != spec.SetBYOK && c.spec != spec.ClearBYOK })
	return len(changes) > 0 && changes[len(changes)-1].spec == spec.ClearBYOK
}

// when returns the beginning of a sentence about an execution.
func (rec *record) when() string {
	if rec.stage == 0 {
		return ""
	}
	return fmt.Sprintf("after the restart %s later, ", stages[rec.stage].later)
}

func (r *run) last() *record    { return r.records[len(r.records)-1] }
func (r *run) usual() []*record { return r.records[0].baseline.records }
func (r *run) died() bool       { return r.records[0].died != "" }

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

// public returns the run in the form that a check of the user gets.
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

// state describes the data of the service.
type state struct {
	ids    []string       // identifiers of the agents that no plan removed
	things map[string]int // how often the service holds a thing, such as a message: with its agent, and without numbers of the fake
	order  map[string]int // the messages of each agent, in their order
	// copies counts each subject. A text counts in the conversation that has it most often,
	// a customer_ref among all agents that no plan removed.
	copies map[subject]int
	byok   bool   // a provider key is stored
	keys   string // the API keys and their state
}

// subject identifies the purpose of a call: the text of a message, or the customer_ref of
// a creation.
type subject struct {
	endpoint *spec.Endpoint
	text     string
}

// subjects returns the subjects in the service, messages first.
func (s state) subjects() []subject {
	return slices.SortedFunc(maps.Keys(s.copies), func(a, b subject) int {
		return cmp.Or(strings.Compare(b.endpoint.Name, a.endpoint.Name), strings.Compare(a.text, b.text))
	})
}

// stateOf reads the data of the service. before is the state that earlier executions
// left.
func stateOf(fake *fakeserver.Server, before persisted) state {
	s := state{things: map[string]int{}, order: map[string]int{}, copies: map[subject]int{}}
	for _, a := range fake.Agents() {
		if !before.gone[a.ID] {
			s.ids = append(s.ids, a.ID)
			if a.CustomerRef != "" {
				s.copies[subject{spec.CreateAgent, a.CustomerRef}]++
			}
		}
		if a.SMS != nil {
			a.SMS.PhoneNumber = "" // depends on the agent's number
		}
		agent := volatile.ReplaceAllString(fmt.Sprintf("%q %q %q %q %q", a.ID, a.CustomerRef, a.SystemPrompt, a.Metadata, a.LLM), "#")
		s.things["agent: "+agent]++
		s.things[fmt.Sprintf("sms: %s %q", agent, a.SMS)]++
		order, count := "order: ", map[subject]int{}
		for _, e := range fake.Conversation(a.ID) {
			text := subject{spec.SendMessage, e.Text}
			count[text]++
			s.copies[text] = max(s.copies[text], count[text])
			message := fmt.Sprintf("message: %s %q %q", agent, e.UserRef, e.Text)
			s.things[message]++
			order += message
		}
		s.order[order]++
	}
	for _, k := range fakeadmin.Of[fakeserver.Call](fake).Keys() {
		s.keys += fmt.Sprintf("%s %s %v;", k.Label, k.Plan, k.Revoked)
	}
	var b fakeserver.BYOK
	if b, s.byok = fake.BYOK(fake.Key()); s.byok {
		s.things[fmt.Sprintf("provider key: %q %q %q %q %q", b.Provider, b.BaseURL, b.Model, b.Label, before.known["byok "+b.Fingerprint])]++
	}
	return s
}

// key is equal for states between which an application sees no difference.
func (s state) key() string { return fmt.Sprintf("%q %v %q\n", s.ids, s.things, s.keys) }

// unlike names what differs first between the things of two states, without people's words;
// "" if nothing does. more says that got may have more than want.
func unlike(got, want map[string]int, more bool) string {
	for _, thing := range slices.Sorted(maps.Keys(want)) {
		if name, _, _ := strings.Cut(thing, ":"); got[thing] < want[thing] {
			return name
		}
	}
	if more {
		return ""
	}
	return unlike(want, got, true)
}

// plural counts things in words: "1 call", "2 calls".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
