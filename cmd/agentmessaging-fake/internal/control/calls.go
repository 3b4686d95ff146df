package control

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/har"
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
		{"endpoint", byEndpoint}, {"method", byMethod}, {"status", bySent}, {"decided", byDecided}, {"fault", byFault},
		{"key", s.byLabel}, {"search", bySearch},
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

// bySent takes calls whose answer arrived whole with a status; 0 takes those
// whose answer did not.
func bySent(r *request, text string) fakeserver.Matcher {
	is := r.statuses("status", text)
	return fakeserver.Where(func(c fakeserver.Call) bool {
		if c.Sent.Broke != "" {
			return is(0)
		}
		return is(c.Sent.Status)
	})
}

// byDecided takes calls by the status that the service decided on; 0 takes those
// that it never saw.
func byDecided(r *request, text string) fakeserver.Matcher {
	is := r.statuses("decided", text)
	return fakeserver.Where(func(c fakeserver.Call) bool { return is(c.Status) })
}

// statuses reads a status, or a digit and xx for a class of them.
func (r *request) statuses(name, text string) func(status int) bool {
	size := 1
	if class, is := strings.CutSuffix(text, "xx"); is {
		text, size = class, 100
	}
	want, err := strconv.Atoi(text)
	if size == 1 && (err != nil || want != 0 && (want < 100 || want > 999)) || size == 100 && (err != nil || want < 1 || want > 5) {
		r.refuse(name, "must be a status such as 429, a class such as 4xx, or 0")
	}
	return func(status int) bool { return status/size == want }
}

func byMethod(_ *request, method string) fakeserver.Matcher {
	return fakeserver.Where(func(c fakeserver.Call) bool { return c.Method == method })
}

// byFault takes calls in which a fault acted whose name contains the text.
func byFault(_ *request, text string) fakeserver.Matcher {
	return fakeserver.Where(func(c fakeserver.Call) bool { return c.Fault != "" && strings.Contains(c.Fault, text) })
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
			c.URL, c.Method, c.Address, headerText(c.Header), headerText(c.Sent.Header), strconv.Itoa(c.Sent.Status), strconv.Itoa(c.Status), c.Key, c.TraceID, c.Code, c.Reason, c.Why, c.LimitKey, c.Fault,
			legible(c.Body), legible(c.Sent.Body), legible(c.ReplyBody),
		}, "\n"))
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(shown, word) })
	})
}

func headerText(h http.Header) string {
	var b strings.Builder
	_ = h.Write(&b) // a Builder takes everything
	return b.String()
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

// listCalls is GET calls: the newest that fit. With a timeout it first waits
// until n of them have come.
func (s *Server) listCalls(r *request) (any, error) {
	matchers, limit, n := s.filter(r), r.number("limit", defaultListed, 1, maxListed), r.number("n", 1, 1, maxListed)
	timeout, waits := r.given("timeout")
	if waits {
		r.refuse("timeout", duration(maxWait)(timeout))
	}
	if r.flaw != nil {
		return nil, r.flaw
	}
	if waits {
		return s.awaitCalls(n, parsed(timeout), matchers), nil
	}
	calls := s.fake.Calls(matchers...)
	return map[string]any{
		"calls": list(calls[max(0, len(calls)-limit):]), "under_way": list(s.fake.UnderWay()),
		"total": len(calls), "dropped": s.admin().DroppedCalls(),
	}, nil
}

const maxWait = 10 * time.Minute

func (s *Server) awaitCalls(n int, timeout time.Duration, matchers []fakeserver.Matcher) stream {
	return func(rw http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		defer context.AfterFunc(s.gone, cancel)()
		calls, err := s.fake.AwaitCalls(ctx, n, matchers...)
		if err != nil {
			writeJSON(rw, http.StatusGatewayTimeout, map[string]any{"error": "timeout", "reason": err.Error(), "calls": list(calls)})
			return
		}
		writeJSON(rw, http.StatusOK, map[string]any{"calls": list(calls), "total": len(calls), "dropped": s.admin().DroppedCalls()})
	}
}

// forgetCalls is DELETE calls.
func (s *Server) forgetCalls(*request) (any, error) {
	s.admin().ForgetCalls()
	return nil, nil
}

// keptCall returns the call with a seq, and whether it is still kept.
func (s *Server) keptCall(seq int) (fakeserver.Call, bool) {
	found := s.admin().CallsAfter(seq-1, 1)
	if len(found) == 0 || found[0].Seq != seq {
		return fakeserver.Call{}, false
	}
	return found[0], true
}

// allCalls are the calls that are kept, a few at a time: copies of all would take as
// much memory again.
func (s *Server) allCalls() iter.Seq[fakeserver.Call] {
	return func(yield func(fakeserver.Call) bool) {
		for seq := 0; ; {
			calls := s.admin().CallsAfter(seq, batch)
			for _, c := range calls {
				if !yield(c) {
					return
				}
				seq = c.Seq
			}
			if len(calls) < batch {
				return
			}
		}
	}
}

// archive is GET calls.har.
func (s *Server) archive(*request) (any, error) {
	return stream(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Content-Disposition", `attachment; filename="calls.har"`)
		_ = har.Write(rw, s.allCalls()) // the client may be gone
	}), nil
}
