package control

import (
	"fmt"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// conversation is GET agents/{agent_id}/conversation: the newest exchanges, or
// those behind the one with a trace id, for a reader who has the others.
func (a agent) conversation(r *request) (any, error) {
	limit := r.number("limit", spec.KeptExchanges, 1, spec.KeptExchanges)
	if r.flaw != nil {
		return nil, r.flaw
	}
	all := a.fake.Conversation(a.ID)
	known := len(all)
	if after := r.query.Get("after"); after != "" {
		for known--; known >= 0 && all[known].TraceID != after; known-- { // the newest are looked at first
		}
	}
	from := max(0, len(all)-limit)
	continues := known < len(all) && known+1 >= from && known >= 0
	if continues {
		from = known + 1
	}
	return map[string]any{"exchanges": list(all[from:]), "total": len(all), "continues": continues}, nil
}

// newExchanges is the body of POST agents/{agent_id}/conversation.
type newExchanges struct {
	Exchanges []newExchange `json:"exchanges" check:"required"`
}

type newExchange struct {
	Text      string    `json:"text" check:"required text"`
	UserRef   string    `json:"user_ref"`
	ReplyText string    `json:"reply_text" check:"required"`
	Warnings  []string  `json:"warnings"`
	Time      time.Time `json:"time"`
	TraceID   string    `json:"trace_id"`
}

func (b newExchanges) flaw() error {
	if len(b.Exchanges) == 0 {
		return badRequest("exchanges", "must hold at least one")
	}
	for i, e := range b.Exchanges {
		if len(e.Text)+len(e.UserRef)+len(e.ReplyText)+len(e.TraceID)+len(strings.Join(e.Warnings, "\n")) > maxSeeded {
			return badRequest(fmt.Sprintf("exchanges[%d]", i), "its texts must have at most %d bytes", maxSeeded)
		}
	}
	return nil
}

// addExchanges is POST agents/{agent_id}/conversation.
func (a agent) addExchanges(body newExchanges) (any, error) {
	for _, e := range body.Exchanges {
		a.fake.AddExchanges(a.ID, fakeserver.Exchange(e))
	}
	return map[string]any{"exchanges": list(a.fake.Conversation(a.ID))}, nil
}
