package control

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// filter reads the parameters that pick calls.
func (s *Server) filter(r *request) (all []fakeserver.Matcher) {
	after, before := r.number("after", 0, 0, noLimit), r.number("before", noLimit, 1, noLimit)
	if after > 0 || before < noLimit {
		all = append(all, fakeserver.Where(func(c fakeserver.Call) bool { return c.Seq > after && c.Seq < before }))
	}
	for _, by := range []struct {
		name    string
		matcher func(*request, string) fakeserver.Matcher
	}{
		{"endpoint", byEndpoint}, {"status", byStatus}, {"key", s.byLabel}, {"search", bySearch},
		{"agent_id", func(_ *request, id string) fakeserver.Matcher { return fakeserver.ByAgent(id) }},
		{"text", func(_ *request, text string) fakeserver.Matcher { return fakeserver.ByText(text) }},
		{"text_containing", func(_ *request, part string) fakeserver.Matcher { return fakeserver.ByTextContaining(part) }},
	} {
		if value, is := r.given(by.name); is {
			all = append(all, by.matcher(r, value))
		}
	}
	return all
}

func byEndpoint(r *request, name string) fakeserver.Matcher {
	r.refuse("endpoint", checks["endpoint"](name))
	return fakeserver.Where(func(c fakeserver.Call) bool { return string(c.Endpoint) == name })
}

// byStatus takes a status, or a digit and xx for a class of them: of what was
// sent, or of what the service decided. 0 also takes what broke off.
func byStatus(r *request, text string) fakeserver.Matcher {
	size := 1
	if class, is := strings.CutSuffix(text, "xx"); is {
		text, size = class, 100
	}
	want, err := strconv.Atoi(text)
	if size == 1 && (err != nil || want != 0 && (want < 100 || want > 999)) || size == 100 && (err != nil || want < 1 || want > 5) {
		r.refuse("status", "must be a status such as 429, a class such as 4xx, or 0")
	}
	return fakeserver.Where(func(c fakeserver.Call) bool {
		return c.Sent.Status/size == want || c.Status/size == want || want == 0 && c.Sent.Broke != ""
	})
}

func (s *Server) byLabel(r *request, label string) fakeserver.Matcher {
	if _, err := s.keyOf("key", label); err != nil && label != keyMissing && label != "unknown" && r.flaw == nil {
		r.flaw = err
	}
	return fakeserver.Where(func(c fakeserver.Call) bool { return c.Key == label })
}

// bySearch takes the words that a person types into a search field: each must
// stand somewhere in what the page shows of a call.
func bySearch(_ *request, typed string) fakeserver.Matcher {
	words := strings.Fields(strings.ToLower(typed))
	return fakeserver.Where(func(c fakeserver.Call) bool {
		shown := strings.ToLower(strings.Join([]string{
			c.Path, c.Method, strconv.Itoa(c.Sent.Status), strconv.Itoa(c.Status), c.Key, c.TraceID, c.Code, c.Reason, c.LimitKey, c.Fault,
			legible(c.Body), legible(c.Sent.Body), legible(c.ReplyBody),
		}, "\n"))
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(shown, word) })
	})
}

// legible is a body as a person reads it: without the escapes of JSON.
func legible(body string) string {
	var b strings.Builder
	d := json.NewDecoder(strings.NewReader(body))
	for {
		token, err := d.Token()
		if err != nil {
			return b.String() + body // a body that is cut or no JSON stands as it is
		}
		if text, is := token.(string); is {
			b.WriteString(text + "\n")
		}
	}
}

// maxListed is how many calls one answer holds.
const (
	maxListed     = 10_000
	defaultListed = 1000
)

// listCalls is GET calls.
func (s *Server) listCalls(r *request) (any, error) {
	matchers, limit := s.filter(r), r.number("limit", defaultListed, 1, maxListed)
	if r.flaw != nil {
		return nil, r.flaw
	}
	calls := s.fake.Calls(matchers...)
	return map[string]any{"calls": list(calls[max(0, len(calls)-limit):]), "total": len(calls), "dropped": s.fake.Admin().DroppedCalls()}, nil
}

const (
	defaultWait = "5s"
	maxWait     = 10 * time.Minute
)

// awaitCalls is GET calls/await.
func (s *Server) awaitCalls(r *request) (any, error) {
	matchers, n, timeout := s.filter(r), r.number("n", 1, 1, maxListed), cmp.Or(r.query.Get("timeout"), defaultWait)
	r.refuse("timeout", duration(maxWait)(timeout))
	if r.flaw != nil {
		return nil, r.flaw
	}
	return stream(func(rw http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), parsed(timeout))
		defer cancel()
		defer context.AfterFunc(s.gone, cancel)()
		calls, err := s.fake.AwaitCalls(ctx, n, matchers...)
		if err != nil {
			writeJSON(rw, http.StatusGatewayTimeout, map[string]any{"error": "timeout", "reason": err.Error(), "calls": list(calls)})
			return
		}
		writeJSON(rw, http.StatusOK, map[string]any{"calls": list(calls)})
	}), nil
}

// archive is GET calls.har.
func (s *Server) archive(*request) (any, error) {
	return stream(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Content-Disposition", `attachment; filename="calls.har"`)
		_ = s.fake.WriteHAR(rw) // the client may be gone
	}), nil
}
