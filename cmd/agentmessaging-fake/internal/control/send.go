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

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

type newMessage struct {
	Text    string `json:"text" check:"required"`
	UserRef string `json:"user_ref,omitempty"`
}

// sendMessage is POST agents/{agent_id}/messages: a call of the service, as the
// page's own application would make it.
func (a agent) sendMessage(body newMessage) (any, error) {
	key, found := a.fake.Admin().KeyWithLabel(a.Agent.Key)
	if !found {
		return nil, conflict("the key of this agent is gone")
	}
	encoded, _ := json.Marshal(body) // strings can always be
	return a.send(http.MethodPost, "/v1/agents/"+url.PathEscape(a.ID)+"/messages", encoded, http.Header{
		"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"},
	}), nil
}

// send makes a call of the service, without the lock, and from the
// address of the caller, so that it spends what an application there would
// spend. It tells the answer.
func (s *Server) send(method, path string, body []byte, header http.Header) stream {
	return func(rw http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), method, s.fake.BaseURL()+path, bytes.NewReader(body))
		if err != nil {
			badRequest("path", "no call can be made with it").ServeHTTP(rw, r)
			return
		}
		req.Header = header
		req.Header.Set("User-Agent", "agentmessaging-fake page")
		status, answered, err := receive(s.fake.Direct(fakeserver.FromIP(addressOf(r))), req)
		if err != nil {
			refuse(http.StatusBadGateway, "no_answer", "the call was made, and its answer did not arrive whole: "+err.Error()).ServeHTTP(rw, r)
			return
		}
		writeJSON(rw, http.StatusOK, map[string]any{"status": status, "body": answered})
	}
}

type newBody struct {
	Body *string `json:"body"`
}

// sendAgain is POST calls/{seq}/send: the same call once more, with another
// body where one is given. A provider key is gone from what was recorded.
func (s *Server) sendAgain(r *request) (any, error) {
	body, err := decode[newBody](r.body)
	if err != nil {
		return nil, err
	}
	seq, _ := strconv.Atoi(r.param("seq"))
	found := s.fake.Admin().CallsAfter(seq-1, 1)
	if len(found) == 0 || found[0].Seq != seq {
		return nil, notFound("no call that is kept has this seq")
	}
	c := found[0]
	header := http.Header{}
	if kind := c.Header.Get("Content-Type"); kind != "" {
		header.Set("Content-Type", kind)
	}
	if c.Key != keyMissing {
		key, known := s.fake.Admin().KeyWithLabel(c.Key)
		if !known {
			return nil, conflict("the key of this call is not known")
		}
		header.Set("Authorization", "Bearer "+key)
	}
	switch {
	case body.Body != nil:
		c.Body = *body.Body
	case c.BodyBytes > 0 && c.Body == "" || len(c.Body) >= spec.KeptBody || strings.Contains(c.Body, redacted):
		return nil, conflict("the body of this call was not kept whole; give one as body")
	}
	return s.send(c.Method, c.Path, []byte(c.Body), header), nil
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
