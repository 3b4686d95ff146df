package pacer

import (
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/scrub"
)

// permit is the leave to send one attempt. The zero value is for an attempt that
// nothing limits.
type permit struct {
	pacer  *Pacer
	kinds  kinds
	grant        // by the state's clock
	due    int64 // the same by the pacer's
	sent   int64
	limit  string // that it waited for
	waited time.Duration
	key    string // of the limit that the outcome closed
	closed time.Duration
}

// Waited is asked by the client, for what it tells of the call.
func (g *permit) Waited() (limitKey string, wait time.Duration) { return g.limit, g.waited }

// Closed is asked by the client after Done.
func (g *permit) Closed() (limitKey string, wait time.Duration) { return g.key, g.closed }

// Done reports what the pacer learns from; most outcomes teach nothing.
func (g *permit) Done(outcome agentmessaging.AttemptOutcome) {
	switch p := g.pacer; {
	case p == nil:
	case outcome.StatusCode == http.StatusTooManyRequests:
		g.refused(outcome)
	case outcome.StatusCode == 0 && !outcome.Sent:
		p.report(g.takeBack)
	case outcome.StatusCode != 0:
		p.answered(g)
	}
}

func (g *permit) giveBack() { g.pacer.step(g.takeBack) }

func (g *permit) takeBack(m *machine) { m.giveBack(g.kinds, g.at) }

func (g *permit) refused(outcome agentmessaging.AttemptOutcome) {
	f := refusal{kinds: g.kinds, granted: g.at, wait: outcome.RetryAfter.Microseconds(), key: scrub.Line(outcome.LimitKey, 64)}
	p := g.pacer
	p.mu.Lock()
	now, wait := p.time.now(), max(f.wait, leastRefusal)
	f.late = p.spread.late(now - g.sent)
	if now+wait-max(now, p.heard.opens(f.kinds)) >= second {
		g.key, g.closed = f.key, time.Duration(wait)*time.Microsecond
		p.heard.shut(f.kinds, now+wait, f.key)
	}
	p.mu.Unlock()
	p.report(func(m *machine) { m.refused(f) })
}

// answered measures the time that answers take, and reports a probe.
func (p *Pacer) answered(g *permit) {
	p.mu.Lock()
	p.spread.add(p.time.now() - g.sent)
	p.mu.Unlock()
	if g.probe {
		p.report(func(m *machine) { m.accepted(g.kinds) })
	}
}

// report takes a step that changes what the waiting calls were told. The
// caller does not wait for the store.
func (p *Pacer) report(f func(*machine)) {
	report := func() {
		p.step(f)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wakeAll()
	}
	if p.store != nil {
		go report()
	} else {
		report()
	}
}

// spread measures how far the times that answers take differ.
type spread struct{ mean, deviation float64 }

func (s *spread) add(took int64) {
	x := float64(took)
	if s.mean == 0 {
		s.mean = x
	}
	s.deviation += (max(x-s.mean, s.mean-x) - s.deviation) / 16
	s.mean += (x - s.mean) / 16
}

// late reports whether an answer took much longer than they do.
func (s *spread) late(took int64) bool {
	return float64(took) > 2*float64(second)+s.mean+6*s.deviation
}

// guard covers the spread of nearly all answers.
func (s *spread) guard() int64 { return int64(3 * s.deviation) }
