package agentmessagingtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Run is what a run of [Sweep] leaves, for a check of the user's own (see
// [Also]): a plan, or none, and the state of the service after the scenario and
// after the restart.
type Run struct {
	// Plan is the name of the plan; "" for the undisturbed run.
	Plan string
	// Fake is the service as the run has left it, and Dir the folder.
	Fake *fakeserver.Server
	Dir  string
	// Calls are the calls of the first execution of the scenario, and
	// Restarted those of the one after the restart.
	Calls, Restarted []Call
	// Lasted is how long the first execution took by the fake's clock.
	Lasted time.Duration
	// Reports is what Env.Reports was told in the first execution, nil
	// errors too.
	Reports []error
	// Told is all that the application said there, reports included.
	Told string
	// Undisturbed is the run to compare with; nil in that run itself.
	Undisturbed *Run
}

// run is a plan on its way.
type run struct {
	sweep *sweep
	plan  plan // nil: undisturbed
	fake  *fakeserver.Server
	dir   string

	plays   [2]*play // the first execution, and that after the restart
	stalled string   // what the watchdog saw

	subscribed fakeserver.Plan // before a fault ended it

	// The play's lock guards these.
	secrets []string // provider keys that were sent
	gone    []string // agents that the plan has removed
	cleared bool     // a stored provider key was about to be cleared
}

func (r *run) name() string {
	if r.plan == nil {
		return "undisturbed"
	}
	return r.plan.name()
}

// restartAfter is how long an application is down: longer than any limit.
const restartAfter = 25 * time.Hour

// execute runs the scenario twice on one fake: as it is disturbed, and as the
// application restarts.
func (r *run) execute(t testing.TB) {
	r.plays[0] = r.perform(t, 0)
	r.undo()
	r.fake.Advance(restartAfter)
	r.plays[1] = r.perform(t, 1)
}

// undo ends what a restart after a day does not meet any more.
func (r *run) undo() {
	for _, h := range r.plan {
		if h.struck && h.fault.undo != nil {
			h.fault.undo(r)
		}
	}
}

// remove makes an agent be gone, for good.
func (p *play) remove(agentID string) {
	p.note(func() {
		if _, found := p.run.fake.Agent(agentID); found {
			p.run.gone = append(p.run.gone, agentID)
			p.run.fake.RemoveAgent(agentID)
		}
	})
}

// willClear takes down that a stored provider key is about to be cleared.
func (p *play) willClear() {
	_, stored := p.run.fake.BYOK(p.run.fake.Key())
	p.note(func() { p.run.cleared = p.run.cleared || stored })
}

// lost is how many agents there are whose identifier the application has
// neither told nor kept.
func (r *run) lost(p *play) (n int) {
	kept := r.kept() + p.told.all()
	if p.restart {
		kept += r.plays[0].told.all()
	}
	for _, a := range r.fake.Agents() {
		if !strings.Contains(kept, a.ID) {
			n++
		}
	}
	return n
}

// kept is what stands in the files of Dir.
func (r *run) kept() string {
	var all strings.Builder
	_ = filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			content, _ := os.ReadFile(path)
			all.Write(content)
		}
		return nil
	})
	return all.String()
}

// public is the run as a check of the user's own sees it.
func (r *run) public(undisturbed *Run) *Run {
	return &Run{
		Plan: strings.TrimPrefix(r.name(), "undisturbed"), Fake: r.fake, Dir: r.dir,
		Calls: r.plays[0].copied(), Restarted: r.plays[1].copied(), Lasted: r.plays[0].lasted,
		Reports: r.plays[0].told.copied(), Told: r.plays[0].told.all(), Undisturbed: undisturbed,
	}
}

func (p *play) copied() (calls []Call) {
	for _, c := range p.calls {
		calls = append(calls, *c)
	}
	return calls
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// execute makes a run on a fresh fake, under the eyes of a watchdog. It reports
// false where that had to end it. The run has a copy of the plan, to note in it
// what was struck.
func (s *sweep) execute(t *testing.T, p plan) (*run, bool) {
	t.Helper()
	dir, err := os.MkdirTemp(s.parent, "")
	if err != nil {
		t.Fatal(err)
	}
	fake, err := fakeserver.Open(s.fakeOptions...)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{sweep: s, plan: slices.Clone(p), fake: fake, dir: dir}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.deadlocked()
		if s.bubble {
			synctest.Test(t, func(t *testing.T) { r.execute(t) })
		} else {
			r.execute(t)
		}
	}()
	s.runs += 2
	if !r.watch(done) {
		return r, false
	}
	if err := fake.Close(); err != nil && p == nil {
		t.Error(err)
	}
	if !t.Failed() {
		_ = os.RemoveAll(r.dir)
	}
	return r, true
}
