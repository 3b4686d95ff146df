package agentmessagingtest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/cooldown"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// play is one execution of the scenario: the first of a plan, or the one
// after the restart.
type play struct {
	run      *run
	restart  bool
	clock    clock // of the client
	told     told
	begun    time.Time // by the fake's clock
	lasted   time.Duration
	panicked string
	left     []string // goroutines that were still there afterwards
	state    state    // of the service afterwards
	lost     int      // agents that nobody knows

	undisturbed *play         // the execution to compare with
	quota       int           // nine times its requests
	longest     time.Duration // of virtual time that this one may take

	mu       sync.Mutex // guards what follows; note takes it
	over     bool       // nothing below changes any more
	calls    []*Call
	points   []string                // that were passed, by name
	names    map[string]int          // how often each name was given
	origins  map[string]uint64       // agents, by the content of the call that created them
	requests int                     // that left the client
	dead     int                     // answers of 401 and 402 in a row, up to now
	deadest  int                     // the longest such row
	ended    string                  // why the scenario was ended; "" where it ended by itself
	cancel   context.CancelFunc      // ends env.Context()
	refusals int                     // calls after the scenario was ended
	due      map[time.Time]time.Time // deadlines of contexts, and when they pass by the fake's clock
}

// perform runs the scenario to its end, for the first time or after the restart.
func (r *run) perform(t testing.TB, nth int) *play {
	p := &play{
		run: r, restart: nth > 0, clock: r.clock(), begun: r.fake.Now(), quota: 10_000, longest: 1000 * time.Hour,
		names: map[string]int{}, origins: map[string]uint64{}, due: map[time.Time]time.Time{},
	}
	if r.sweep.baseline != nil {
		p.undisturbed = r.sweep.baseline.plays[nth]
		p.quota, p.longest = 9*max(1, p.undisturbed.requests), p.undisturbed.lasted+r.sweep.within
	}
	env := &Env{tb: t, Fake: r.fake, Dir: r.dir, play: p}
	env.ctx, env.cancel = context.WithCancel(context.Background())
	p.cancel = env.cancel
	env.Client = p.client()
	before, done := runtime.NumGoroutine(), make(chan struct{})
	go func() {
		defer close(done)
		defer p.recovered()
		defer env.finish()
		defer p.recovered() // of the scenario, so that the cleanups run
		label(r.name())
		r.sweep.scenario(env)
	}()
	<-done
	if !r.sweep.bubble && runtime.NumGoroutine() > before {
		p.left = r.leftovers(before)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over, p.lasted, p.state, p.lost = true, r.fake.Now().Sub(p.begun), r.stateNow(), r.lost(p)
	return p
}

// recovered takes a panic down.
func (p *play) recovered() {
	if v := recover(); v != nil {
		p.panicked = fmt.Sprintf("%v\n%s", v, debug.Stack())
	}
}

// client is a new client of the run's fake whose every attempt passes the wire.
func (p *play) client() *agentmessaging.Client {
	opts := []agentmessaging.Option{
		agentmessaging.WithHTTPClient(&http.Client{Transport: &wire{p, p.run.fake.Direct()}}),
		agentmessaging.WithObserver(p),
		agentmessaging.WithClock(p.clock),
	}
	client, err := agentmessaging.NewClient(p.run.fake.BaseURL(), p.run.fake.Key(), append(opts, p.run.sweep.clientOptions...)...)
	if err != nil {
		panic("agentmessagingtest: " + err.Error())
	}
	return client
}

// note runs f under the lock. What comes after the end of the play is not noted.
func (p *play) note(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		f()
	}
}

// point passes a place of the application's own.
func (p *play) point(name string) (err error) {
	p.note(func() {
		p.names[name]++
		place := fmt.Sprintf("%s_%d", name, p.names[name])
		p.points = append(p.points, place)
		if p.run.strikes(p, place, nil) != nil {
			err = fmt.Errorf("agentmessagingtest: %s fails, as planned", place)
		}
	})
	return err
}

// stop ends a scenario that would not end by itself, by its context; a
// goroutine that goes on calling is ended by begin. The lock is held.
func (p *play) stop(why string) {
	if p.ended == "" {
		p.ended = why
		p.cancel()
	}
}

// racing returns the endpoints that several goroutines have called, and whether
// all calls came from one.
func (p *play) racing() (racing map[*spec.Endpoint]bool, single bool) {
	racing, single = map[*spec.Endpoint]bool{}, true
	by := map[*spec.Endpoint]string{}
	for _, c := range p.calls {
		single = single && c.routine == p.calls[0].routine
		racing[c.spec] = racing[c.spec] || cmp.Or(by[c.spec], c.routine) != c.routine
		by[c.spec] = c.routine
	}
	return racing, single
}

// routine is the caller's goroutine: "goroutine 12".
func routine() string {
	var head [32]byte
	words := strings.Fields(string(head[:runtime.Stack(head[:], false)]))
	return strings.Join(words[:2], " ")
}

// clock is a clock whose client waits in every run with the same jitter.
type clock struct {
	agentmessaging.Clock
	jitter float64
}

func (r *run) clock() clock {
	c := clock{r.fake, rand.New(rand.NewPCG(r.sweep.seed, 0)).Float64()}
	switch {
	case r.sweep.bubble:
		c.Clock = cooldown.RealClock{} // which is the bubble's
	case r.sweep.single:
		c.Clock = alone{r.fake}
	}
	return c
}

// Random is asked by the client; see agentmessaging.WithClock.
func (c clock) Random() float64 { return c.jitter }

// alone is the clock of a scenario whose calls come from one goroutine: nobody
// else has to come to rest before the time moves on.
type alone struct{ *fakeserver.Server }

func (a alone) Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 && ctx.Err() == nil {
		a.Advance(d)
	}
	return ctx.Err()
}
