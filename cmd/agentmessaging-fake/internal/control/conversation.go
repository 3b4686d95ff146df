package control

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

type exchangeView struct {
	Text      string    `json:"text"`
	UserRef   *string   `json:"user_ref"`
	ReplyText string    `json:"reply_text"`
	Warnings  []string  `json:"warnings"`
	Time      time.Time `json:"time"`
	TraceID   *string   `json:"trace_id"`
}

func viewsOfExchanges(all []fakeserver.Exchange) []exchangeView {
	views := []exchangeView{}
	for _, e := range all {
		warnings := append([]string{}, e.Warnings...) // an empty list, not null
		views = append(views, exchangeView{e.Text, nullable(e.UserRef), e.ReplyText, warnings, e.Time, nullable(e.TraceID)})
	}
	return views
}

// conversation is GET agents/{agent_id}/conversation: the newest exchanges, or
// those behind the one with a trace id, for a reader who has the others.
func (w *world) conversation(r *request) (answer, *refusal) {
	a, refused := w.agent(r)
	if refused != nil {
		return answer{}, refused
	}
	limit, refused := r.number("limit", maxExchanges, 1, maxExchanges)
	if refused != nil {
		return answer{}, refused
	}
	all := w.fake.Conversation(a.ID)
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
	return ok(map[string]any{"exchanges": viewsOfExchanges(all[from:]), "total": len(all), "continues": continues})
}

type exchangeSpec struct {
	Text      string     `json:"text" check:"required"`
	UserRef   string     `json:"user_ref"`
	ReplyText string     `json:"reply_text" check:"required"`
	Warnings  []string   `json:"warnings"`
	Time      *time.Time `json:"time"`
	TraceID   string     `json:"trace_id"`
}

// addExchanges is POST agents/{agent_id}/conversation.
func (w *world) addExchanges(r *request) (answer, *refusal) {
	a, refused := w.agent(r)
	if refused != nil {
		return answer{}, refused
	}
	body, refused := decode[struct {
		Exchanges []exchangeSpec `json:"exchanges" check:"required"`
	}](r.body)
	if refused == nil {
		refused = flawOfExchanges(body.Exchanges)
	}
	if refused != nil {
		return answer{}, refused
	}
	for _, e := range body.Exchanges {
		w.fake.AddExchanges(a.ID, fakeserver.Exchange{
			Text: e.Text, UserRef: e.UserRef, ReplyText: e.ReplyText, Warnings: e.Warnings, Time: given(e.Time), TraceID: e.TraceID,
		})
	}
	w.hub.changed(changedAgents)
	return created(map[string]any{"exchanges": viewsOfExchanges(w.fake.Conversation(a.ID))})
}

func flawOfExchanges(all []exchangeSpec) *refusal {
	if len(all) == 0 {
		return badRequest("exchanges", "must hold at least one")
	}
	for i, e := range all {
		at := indexed("exchanges", i)
		if flaw := first(inField(at+".text", e.Text, spec.MessageText), inYears(at+".time", e.Time)); flaw != nil {
			return flaw
		}
		if e.bytes() > maxSeeded {
			return badRequest(at, "its texts must have at most %d bytes", maxSeeded)
		}
	}
	return nil
}

// maxSeeded bounds an exchange, of which an agent keeps many.
const maxSeeded = 64 << 10

func (e exchangeSpec) bytes() int {
	return len(e.Text) + len(e.UserRef) + len(e.ReplyText) + len(e.TraceID) + len(strings.Join(e.Warnings, "\n"))
}

type messageBody struct {
	Text    string `json:"text" check:"required"`
	UserRef string `json:"user_ref,omitempty"`
}

// sendMessage is POST agents/{agent_id}/messages: a call of the service, for
// which the world's lock is not held.
func (w *world) sendMessage(r *request) (answer, *refusal) {
	a, refused := w.agent(r)
	if refused != nil {
		return answer{}, refused
	}
	body, refused := decode[messageBody](r.body)
	if refused != nil {
		return answer{}, refused
	}
	key, found := w.fake.Admin().KeyWithLabel(a.Key)
	if !found {
		return answer{}, conflict("the key of this agent is gone")
	}
	return answer{write: func(rw http.ResponseWriter, hr *http.Request) { w.call(rw, hr, a.ID, key, body) }}, nil
}

// call sends the message as the page's own application would.
func (w *world) call(rw http.ResponseWriter, hr *http.Request, agentID, key string, body messageBody) {
	encoded, _ := json.Marshal(body) // strings can always be
	w.send(rw, hr, http.MethodPost, "/v1/agents/"+url.PathEscape(agentID)+"/messages", encoded, http.Header{
		"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}, "User-Agent": {"agentmessaging-fake page"},
	})
}

// send makes a call of the service from the address of the caller, so that it
// spends what an application there would spend, and tells its answer.
func (w *world) send(rw http.ResponseWriter, hr *http.Request, method, path string, body []byte, header http.Header) {
	req, err := http.NewRequestWithContext(hr.Context(), method, w.fake.BaseURL()+path, bytes.NewReader(body))
	if err != nil {
		badRequest("path", "no call can be made with it").ServeHTTP(rw, hr)
		return
	}
	req.Header = header
	status, answered, err := receive(w.fake.Direct(fakeserver.FromIP(addressOf(hr))), req)
	if err != nil {
		noAnswer := &refusal{status: http.StatusBadGateway, Code: "no_answer", Reason: "the call was made, and its answer did not arrive whole: " + err.Error()}
		noAnswer.ServeHTTP(rw, hr)
		return
	}
	writeJSON(rw, http.StatusOK, map[string]any{"status": status, "body": answered})
}

// sendAgain is POST calls/{seq}/send: the same call once more, with another
// body where one is given. A provider key is gone from what was recorded.
func (w *world) sendAgain(r *request) (answer, *refusal) {
	body, refused := decode[struct {
		Body *string `json:"body"`
	}](r.body)
	if refused != nil {
		return answer{}, refused
	}
	seq, err := strconv.Atoi(r.param("seq"))
	found := w.fake.Calls(fakeserver.Where(func(c fakeserver.Call) bool { return c.Seq == seq }))
	if err != nil || len(found) == 0 {
		return answer{}, notFound("no call that is kept has this seq")
	}
	c := found[0]
	header := http.Header{"User-Agent": {"agentmessaging-fake page"}}
	if kind := c.Header.Get("Content-Type"); kind != "" {
		header.Set("Content-Type", kind)
	}
	if c.Key != fakeserver.KeyMissing {
		key, known := w.fake.Admin().KeyWithLabel(c.Key)
		if !known {
			return answer{}, conflict("the key of this call is not known")
		}
		header.Set("Authorization", "Bearer "+key)
	}
	text := c.Body
	switch {
	case body.Body != nil:
		text = *body.Body
	case c.BodyBytes > 0 && c.Body == "" || len(c.Body) >= bodyLimit || strings.Contains(c.Body, redacted):
		return answer{}, conflict("the body of this call was not kept whole; give one as body")
	}
	return answer{write: func(rw http.ResponseWriter, hr *http.Request) { w.send(rw, hr, c.Method, c.Path, []byte(text), header) }}, nil
}

const redacted = "[redacted]"

// receive makes a call and reads its answer: as JSON, or as a string where it
// is none.
func receive(wire http.RoundTripper, req *http.Request) (status int, body any, err error) {
	resp, err := wire.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err
	}
	if json.Valid(raw) {
		return resp.StatusCode, json.RawMessage(raw), nil
	}
	return resp.StatusCode, string(raw), nil
}

func addressOf(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "127.0.0.1"
	}
	return from.Addr().Unmap().WithZone("").String()
}

// setSMS is PUT agents/{agent_id}/sms.
func (w *world) setSMS(r *request) (answer, *refusal) {
	a, refused := w.agent(r)
	if refused != nil {
		return answer{}, refused
	}
	body, refused := decode[struct {
		Status      string `json:"status" check:"required"`
		PhoneNumber string `json:"phone_number"`
	}](r.body)
	if refused == nil {
		refused = first(oneOf("status", body.Status, spec.SMSStatuses), phoneFlaw("phone_number", body.PhoneNumber))
	}
	if refused != nil {
		return answer{}, refused
	}
	w.fake.SetSMS(a.ID, body.Status, body.PhoneNumber)
	w.hub.changed(changedAgents)
	return w.getAgent(r)
}
