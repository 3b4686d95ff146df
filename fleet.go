package agentmessaging

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

const (
	// coordinatorWait is how long a step may take before the process goes on
	// without the coordinator.
	coordinatorWait = 200 * time.Millisecond
	// coordinatorRetry is the time between two looks for one that is away; up
	// to a quarter of it is added, so that the fleet does not come at once.
	coordinatorRetry = 2 * time.Second
	// replayed is how many grants one step brings in.
	replayed = 500
)

// fleet is what a pacer knows of the other processes. The pacer's lock guards it.
type fleet struct {
	coordinator quota.Coordinator
	journal     journal
	cooling     []cooled
	size        int
	epoch       int64

	away    bool
	retryAt time.Duration
	looking bool

	forgot bool // the coordinator has lost its state and is to be told again
	tellAt time.Duration
}

// cooled is a refusal whose Retry-After has not passed: like the grants, a new
// or returning state has to hear of it.
type cooled struct {
	step  quota.Step
	end   time.Duration
	heard bool // by the coordinator
}

// mostCooling bounds what is kept; the service chooses how often it refuses.
const mostCooling = 64

// cool remembers a refusal.
func (p *Pacer) cool(step quota.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, now := p.fleet, p.clock.now()
	f.trimCooling(now)
	if step.RetryAfter > 0 && len(f.cooling) < mostCooling {
		f.cooling = append(f.cooling, cooled{step: step, end: later(now, step.RetryAfter)})
	}
}

func (f *fleet) trimCooling(now time.Duration) {
	f.cooling = slices.DeleteFunc(f.cooling, func(c cooled) bool { return c.end <= now })
}

// refusals are those that still hold, as they would be told now.
func (f *fleet) refusals(now time.Duration, all bool) []quota.Step {
	f.trimCooling(now)
	var steps []quota.Step
	for _, c := range f.cooling {
		if all || !c.heard {
			c.step.RetryAfter = c.end - now
			steps = append(steps, c.step)
		}
	}
	return steps
}

// call takes a step with the coordinator, within coordinatorWait whatever the
// coordinator does. A grant that comes too late is given back.
func (p *Pacer) call(step quota.Step) (quota.Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), coordinatorWait)
	defer cancel()
	type result struct {
		answer quota.Answer
		err    error
	}
	done := make(chan result)
	go func() {
		answer, err := p.fleet.coordinator.Do(ctx, step)
		select {
		case done <- result{answer, err}:
		case <-ctx.Done():
			if err == nil && answer.Granted {
				p.giveBack(step)
			}
		}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return quota.Answer{}, r.err
		}
		return sane(step, r.answer)
	case <-ctx.Done():
		return quota.Answer{}, ctx.Err()
	}
}

// giveBack gives back a grant that came too late, unless the same attempt was
// sent with leave from here: then the grant stands for it.
func (p *Pacer) giveBack(step quota.Step) {
	p.mu.Lock()
	sent := p.fleet.journal.has(step.ID)
	p.mu.Unlock()
	if sent {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), coordinatorWait)
	defer cancel()
	step.Kind = quota.Unused
	_, _ = p.fleet.coordinator.Do(ctx, step) // if it fails, one call of the window is lost
}

// longestTold is the longest wait that is believed: it can be added to.
const longestTold = 100 * 365 * 24 * time.Hour

var errNonsense = errors.New("the coordinator's answer makes no sense")

// sane is an answer that can be acted on. One that breaks the protocol is as
// good as none.
func sane(step quota.Step, answer quota.Answer) (quota.Answer, error) {
	if step.Kind != quota.Ask || answer.Granted {
		return answer, nil
	}
	if answer.Wait <= 0 || answer.Limit < 0 || answer.Limit >= len(step.Limits) {
		return quota.Answer{}, errNonsense
	}
	answer.Wait = min(max(answer.Wait, time.Millisecond), longestTold)
	answer.Alone = min(max(answer.Alone, 0), answer.Wait)
	answer.Gap = max(0, answer.Gap)
	return answer, nil
}

// present reports whether the coordinator is to be asked. While it is away, it
// is looked for beside the calls, so that none of them waits for it.
func (p *Pacer) present(step quota.Step) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.fleet
	if step.Kind == quota.Unused {
		f.journal.remove(step.ID)
	}
	if !f.away {
		return true
	}
	if !f.looking && p.clock.now() >= f.retryAt {
		f.looking = true
		go p.look()
	}
	return false
}

// lost goes on without the coordinator, and says so once.
func (p *Pacer) lost(err error) {
	if processes, news := p.goAway(); news {
		p.logger.Warn("agentmessaging quota coordinator does not answer; working on a share of the limits",
			slog.Int("processes", processes), slog.String("error", oneLine(err.Error(), maxErrorText)))
	}
}

func (p *Pacer) goAway() (processes int, news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, now := p.fleet, p.clock.now()
	if f.away {
		return 0, false
	}
	f.away, f.retryAt = true, now+retryIn()
	if f.size > 0 {
		p.size = f.size
	}
	grants := f.journal.all(now)
	p.local = p.alone(len(grants) == 0 || grants[len(grants)-1].Age > time.Minute)
	p.local.Do(now.Microseconds(), p.replay(grants))
	for _, step := range f.refusals(now, true) {
		p.local.Do(now.Microseconds(), step)
	}
	return p.size, true
}

func retryIn() time.Duration {
	return coordinatorRetry + time.Duration(rand.Float64()*float64(coordinatorRetry)/4)
}

// look tells the coordinator what was sent without it. If it has heard that,
// it is there again, and hears what was sent in the meantime.
func (p *Pacer) look() {
	// First a step that may be carried out late without harm: a replay that is
	// makes its grants younger than they are.
	_, err := p.call(p.replay(nil))
	if err == nil {
		err = p.tell()
	}
	missed := p.found(err)
	if err != nil {
		return
	}
	p.logger.Info("agentmessaging quota coordinator answers again")
	if !missed {
		return
	}
	if err := p.tell(); err != nil {
		p.lost(err)
	}
}

// found ends the look, and reports whether the coordinator is there but has
// missed something.
func (p *Pacer) found(err error) (missed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, now := p.fleet, p.clock.now()
	f.looking = false
	if err != nil {
		f.retryAt = now + retryIn()
		return false
	}
	f.away = false
	for _, l := range p.lanes {
		l.wake()
	}
	return len(f.journal.unheard(now)) > 0 || len(f.refusals(now, false)) > 0
}

// tell brings in what the coordinator has not heard of, some at a time; none
// is a step too.
func (p *Pacer) tell() error {
	p.mu.Lock()
	grants := p.fleet.journal.unheard(p.clock.now())
	refusals := p.fleet.refusals(p.clock.now(), false)
	p.mu.Unlock()
	var steps []quota.Step
	for ; len(grants) > replayed; grants = grants[replayed:] {
		steps = append(steps, p.replay(grants[:replayed]))
	}
	steps = append(steps, p.replay(grants))
	for _, step := range append(steps, refusals...) {
		answer, err := p.call(step)
		if err != nil {
			return err
		}
		p.note(step, answer)
	}
	return nil
}

func (p *Pacer) replay(grants []quota.Grant) quota.Step {
	return quota.Step{Kind: quota.Replay, Limits: p.limits, ID: uint64(p.member) << 32, Grants: grants}
}

// heard notes what an answer tells. If the coordinator has lost its state, it
// hears again of all that this process has sent.
func (p *Pacer) heard(step quota.Step, answer quota.Answer) {
	calls, again := p.note(step, answer)
	if !again {
		return
	}
	p.logger.Warn("agentmessaging quota coordinator has lost its state; telling it again", slog.Int("calls", calls))
	if err := p.tell(); err != nil {
		p.lost(err)
	}
}

// note reports whether the coordinator is to be told again, and of how many
// calls. One whose epoch changes all the time is told every now and then.
func (p *Pacer) note(step quota.Step, answer quota.Answer) (calls int, again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, now := p.fleet, p.clock.now()
	if f.epoch != 0 && f.epoch != answer.Epoch {
		f.forgot = true
		f.journal.unmark()
		for i := range f.cooling {
			f.cooling[i].heard = false
		}
	}
	f.size, f.epoch = answer.Fleet, answer.Epoch
	if answer.Granted {
		f.journal.add(now, step, true)
	}
	f.journal.mark(step.Grants)
	for i, c := range f.cooling {
		if step.Kind == quota.Refused && c.step.ID == step.ID {
			f.cooling[i].heard = true
		}
	}
	if !f.forgot || f.away || now < f.tellAt || step.Kind == quota.Replay {
		return 0, false
	}
	f.forgot, f.tellAt = false, now+coordinatorRetry
	calls = len(f.journal.unheard(now))
	return calls, calls > 0 || len(f.refusals(now, false)) > 0
}
