package sweep

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
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

// Call is a call of the client, as its events and its requests show it.
type Call struct {
	// Name names the call within the scenario: SendMessage_2 is the second SendMessage. If
	// another goroutine than the scenario's makes the call, its name depends on what it
	// sends and to whom, such as SendMessage_9f1c2a, and is the same in all runs and
	// restarts. A number would mean nothing there, because the order of the goroutines
	// changes from run to run. SendMessage_unsent sent nothing, because the client refused
	// it.
	Name     string
	Endpoint fakeserver.Endpoint
	AgentID  string    // the agent that the call names, or has created
	Attempts []Attempt // the attempts that left the client
	Err      error     // the error that the client returned; also nil while the call is under way

	spec         *spec.Endpoint
	begun        time.Time // by the fake's clock
	ended        bool
	goroutine    string // the goroutine that made the call
	fromScenario bool   // the goroutine is the scenario's own
	expired      bool   // the call's deadline has passed by the fake's clock, though not yet in real time
	content      uint64 // digest of the request body and of the agent; 0 before the first request
	subject      string // the message's text, or the creation's customer_ref
	key          string // the provider key in the request; "" for none
}

// Attempt is one request.
type Attempt struct {
	Status int    // 0: no answer
	Fault  string // name of the fault that hit the attempt; "" for none
	Err    error  // set if no whole answer came
}

func (c *Call) failed() bool    { return c.ended && c.Err != nil }
func (c *Call) succeeded() bool { return c.ended && c.Err == nil }

// onAgent reports whether the call is about an existing agent.
func (c *Call) onAgent() bool { return c.AgentID != "" && c.spec != spec.CreateAgent }

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

	untorn         *run // for a death in the middle of a write: the run that dies just before the torn write
	reportedBefore bool // a report came before the death

	// Only of the baseline: the executions of the first run without faults, with which the
	// baseline, the second, is compared; patterns of the lines in which the two differ; and
	// whether messages have the same order in both and cannot race.
	trial   []*record
	varied  patterns
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
	hadKey      bool        // a provider key was stored at some time
	requests    int         // requests that left the client and were not refused with 429
	ended       string      // why the scenario was ended; "" if it ended by itself
	died        string      // where the process died; "" if it did not
	stalled     string      // why the watchdog ended the execution
	panicked    string
	skipped     bool     // by Env.Skip
	misused     error    // what would have failed the test of fakeserver.New, such as a Required script that was never used
	leaked      []string // goroutines that still ran afterwards
	lasted      time.Duration
	// deadKeyRequests is the largest number of answers 401 and 402 in a row after which a
	// goroutine sent another request.
	deadKeyRequests        int
	maxRequests, maxLeaked int           // see Quota and Leak
	maxLasted              time.Duration // virtual time

	seen    seen      // also by the executions before it
	left    persisted // the state that the next execution finds; empty while this one runs
	moments []moment  // the moments at which the process might die, in order
}

// baselineExecutions returns the executions of the baseline with which to compare this
// execution. A restart is also compared with the first execution, whose work it may have to
// do. baselineExecutions returns nil before the baseline is complete.
func (rec *record) baselineExecutions() []*record {
	if len(rec.baseline.records) == 0 {
		return nil
	}
	return []*record{rec.baseline.records[0], rec.baseline.records[rec.stage], rec.baseline.trial[0], rec.baseline.trial[rec.stage]}
}

// moment is a point in time at which the process might die.
type moment struct {
	name      string    // SendMessage_1/dies_arrived
	when      string    // after SendMessage_1 had arrived
	untornKey string    // for a death in the middle of a write: the key of the state that a death before the write leaves
	left      persisted // the state that a restart finds
	record    *record   // the record up to this moment
}

// snapshot copies the record of a process that dies at a moment, which is now. Statements
// and attempts are only appended, so the copy may share their memory.
func (rec *record) snapshot(m moment) *record {
	r := *rec
	r.calls, r.moments, r.seen, r.left, r.died = nil, nil, m.left.seen, m.left, m.when
	r.endLine()
	for _, c := range rec.calls {
		one := *c
		r.calls = append(r.calls, &one)
	}
	return &r
}

// endLine makes a statement of a last line that has no line feed.
func (rec *record) endLine() {
	if len(rec.unended) > 0 {
		rec.statements = append(slices.Clip(rec.statements), statementOf(string(rec.unended), rec.seen.errors))
		rec.unended = nil
	}
}

// said returns all texts of the application as one text.
func (rec *record) said() string {
	var all strings.Builder
	for _, t := range rec.statements {
		if t.text != "" {
			all.WriteString(strings.TrimRight(t.text, "\n") + "\n")
		}
	}
	return all.String()
}

// reports returns the statements that count as reports: the baseline does not have them,
// or not as often.
func (rec *record) reports() []statement { return rec.newStatements(rec.baselineExecutions()...) }

// newStatements returns the statements about a problem that the others do not have as
// often, or that quote the error of a call that does not fail in the baseline.
func (rec *record) newStatements(others ...*record) (fresh []statement) {
	varied, lists := rec.baseline.varied, [][]statement{}
	for _, u := range others {
		lists = append(lists, u.statements)
	}
	baselineCounts := varied.maxCounts(lists...)
	for _, t := range rec.statements {
		key := varied.key(t)
		if baselineCounts[key]--; t.kind != said && (baselineCounts[key] < 0 || rec.quotesFailure(t)) {
			fresh = append(fresh, t)
		}
	}
	return fresh
}

// quotesFailure reports whether a statement has the error of a call that does not fail in
// the baseline.
func (rec *record) quotesFailure(t statement) bool {
	return slices.ContainsFunc(rec.calls, func(c *Call) bool {
		return c.failed() && strings.Contains(t.text, c.Err.Error()) && !rec.failsInBaseline(c)
	})
}

// failsInBaseline reports whether the call of this name fails in the baseline too.
func (rec *record) failsInBaseline(c *Call) bool {
	return slices.ContainsFunc(rec.baselineExecutions(), func(u *record) bool {
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

func (r *run) last() *record              { return r.records[len(r.records)-1] }
func (r *run) baselineRecords() []*record { return r.records[0].baseline.records }
func (r *run) died() bool                 { return r.records[0].died != "" }

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

// forCheck returns the run in the form that a check of the user gets.
func (r *run) forCheck() *Run {
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

// withoutKeys replaces the service key and the provider keys of the calls in a text.
func (rec *record) withoutKeys(text string) string {
	for _, c := range rec.calls {
		if c.key != "" {
			text = strings.ReplaceAll(text, c.key, "[key]")
		}
	}
	return strings.ReplaceAll(text, rec.fake.Key(), "[key]")
}
