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
	at     int64  // when it may be sent, by the state's clock
	early  int64  // the call sleeps for so long, until then
	limit  string // that it waited for
	waited int64
	key    string // of the limit that the outcome closed
	closed time.Duration
}

// Waited is asked by the client, for what it tells of the call.
func (g *permit) Waited() (limitKey string, wait time.Duration) {
	return g.limit, time.Duration(g.waited) * time.Microsecond
}

// Closed is asked by the client after Done.
func (g *permit) Closed() (limitKey string, wait time.Duration) { return g.key, g.closed }

// Done: most outcomes teach nothing.
func (g *permit) Done(outcome agentmessaging.AttemptOutcome) {
	switch {
	case g.pacer == nil:
	case outcome.StatusCode == http.StatusTooManyRequests:
		g.refused(max(outcome.RetryAfter.Microseconds(), second), scrub.Line(outcome.LimitKey, 64))
	case outcome.StatusCode == 0 && !outcome.Sent:
		g.giveBack()
	}
}

func (g *permit) giveBack() { g.pacer.report(func(m *machine) { m.giveBack(g.kinds, g.at) }) }

func (g *permit) refused(wait int64, key string) {
	g.pacer.mu.Lock()
	m := g.pacer.here(g.pacer.now())
	if m.now+wait-max(m.now, m.last(g.kinds).Opens) >= second {
		g.key, g.closed = key, time.Duration(wait)*time.Microsecond
		m.shut(g.kinds, m.now+wait, key) // in the copy, so that the others know that it is no news
	}
	g.pacer.mu.Unlock()
	g.pacer.report(func(m *machine) { m.refused(g.kinds, g.at, wait, key) })
}

// report takes a step that changes what the waiting calls were told. The
// caller does not wait for the store.
func (p *Pacer) report(f func(*machine)) {
	report := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.step(f)
		p.wakeAll()
	}
	if p.store != nil {
		go report()
	} else {
		report()
	}
}
