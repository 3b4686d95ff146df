package control

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// newCall is the body of POST calls: a call that was recorded, by its seq, or one
// of the caller's own. Body replaces the body of a recorded call.
type newCall struct {
	Seq     int     `json:"seq" check:"turns"`
	Method  string  `json:"method" check:"filled"`
	Path    string  `json:"path" check:"filled"`
	Key     string  `json:"key" check:"filled"` // a label; "": a call without a key
	Address string  `json:"address" check:"address"`
	Body    *string `json:"body"`
}

func (b newCall) flaw() error {
	switch {
	case b.Seq != 0 && b.Method+b.Path+b.Key != "":
		return badRequest("seq", "goes with body and address only")
	case b.Seq == 0 && (b.Method == "" || !strings.HasPrefix(b.Path, "/v1/")):
		return badRequest("body", "needs seq, or method and a path that begins with /v1/")
	}
	return nil
}

// makeCall is POST calls. The service sees the call as any other: it counts
// against limits, and is recorded.
func (s *Server) makeCall(body newCall) (any, error) {
	header, sent := http.Header{"Content-Type": {"application/json"}}, []byte(given(body.Body))
	label := body.Key
	if body.Seq != 0 {
		c, kept := s.keptCall(body.Seq)
		if !kept {
			return nil, notFound("no call that is kept has this seq")
		}
		body.Method, body.Path, label = c.Method, c.Path, c.Key
		header["Content-Type"] = c.Header["Content-Type"]
		switch {
		case body.Body != nil:
		case c.BodyBytes > 0 && c.Body == "" || len(c.Body) >= spec.KeptBody || strings.Contains(c.Body, redacted):
			return nil, conflict("the body of this call was not kept whole; give one as body")
		default:
			sent = []byte(c.Body)
		}
	}
	if label != "" && label != keyMissing {
		key, known := s.admin().KeyLabeled(label)
		if !known {
			return nil, conflict("no key has the label %s", quoted(label))
		}
		header.Set("Authorization", "Bearer "+key)
	}
	return s.send(body, sent, header), nil
}

// send makes a call of the service, without the lock, and answers what came
// back.
func (s *Server) send(c newCall, body []byte, header http.Header) stream {
	return func(rw http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), c.Method, s.fake.BaseURL()+c.Path, bytes.NewReader(body))
		if err != nil {
			badRequest("path", "no call can be made with it").ServeHTTP(rw, r)
			return
		}
		req.Header = header
		req.Header.Set("User-Agent", "agentmessaging-fake page")
		status, answered, err := receive(s.fake.Direct(fakeserver.FromIP(cmp.Or(c.Address, addressOf(r)))), req)
		if err != nil {
			refuse(http.StatusBadGateway, "no_answer", "the call was made, and its answer did not arrive whole: "+err.Error()).ServeHTTP(rw, r)
			return
		}
		writeJSON(rw, http.StatusOK, map[string]any{"status": status, "body": answered})
	}
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
