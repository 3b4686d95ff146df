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
func (p *permit) Waited() (limitKey string, wait time.Duration) {
	return p.limit, time.Duration(p.waited) * time.Microsecond
}

// Closed is asked by the client after Done.
func (p *permit) Closed() (limitKey string, wait time.Duration) { return p.key, p.closed }

// Done: most outcomes teach nothing.
func (p *permit) Done(outcome agentmessaging.AttemptOutcome) {
	switch {
	case p.pacer == nil:
	case outcome.StatusCode == http.StatusTooManyRequests:
		p.refused(max(outcome.RetryAfter.Microseconds(), second), scrub.Name(outcome.LimitKey))
	case outcome.StatusCode == 0 && !outcome.Sent:
		p.giveBack()
	}
}

func (p *permit) giveBack() { p.pacer.report(func(m *machine) { m.giveBack(p.kinds, p.at) }) }

func (p *permit) refused(wait int64, key string) {
	p.pacer.locked(func() {
		m := p.pacer.here(p.pacer.now())
		if m.now+wait-max(m.now, m.last(p.kinds).Opens) >= second {
			p.key, p.closed = key, time.Duration(wait)*time.Microsecond
			m.shut(p.kinds, m.now+wait, key) // in the copy, so that the others know that it is no news
		}
	})
	p.pacer.report(func(m *machine) { m.refused(p.kinds, p.at, wait, key) })
}
