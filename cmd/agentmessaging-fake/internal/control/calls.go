package control

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// callView is a call with the time that it took in microseconds, which a
// number of JavaScript holds for 285 years.
type callView struct {
	fakeserver.Call
	TookUS int64 `json:"took_us"`
	Hidden *int  `json:"took_ns,omitempty"` // hides that of Call
}

func viewsOfCalls(calls []fakeserver.Call) []callView {
	views := []callView{}
	for _, c := range calls {
		views = append(views, callView{Call: c, TookUS: c.Took.Microseconds()})
	}
	return views
}

// filter reads the parameters that pick calls.
func (w *world) filter(r *request) (all []fakeserver.Matcher, _ *refusal) {
	after, refused := r.number("after", 0, 0, noLimit)
	if refused != nil {
		return nil, refused
	}
	before, refused := r.number("before", noLimit, 1, noLimit)
	if refused != nil {
		return nil, refused
	}
	if after > 0 || before < noLimit {
		all = append(all, fakeserver.Where(func(c fakeserver.Call) bool { return c.Seq > after && c.Seq < before }))
	}
	for _, f := range []struct {
		name  string
		parse func(*world, string) (fakeserver.Matcher, *refusal)
	}{
		{"endpoint", byEndpoint},
		{"status", byStatus},
		{"key", byLabel},
		{"agent_id", func(_ *world, id string) (fakeserver.Matcher, *refusal) { return fakeserver.ByAgent(id), nil }},
		{"text", func(_ *world, text string) (fakeserver.Matcher, *refusal) { return fakeserver.ByText(text), nil }},
		{"text_containing", func(_ *world, part string) (fakeserver.Matcher, *refusal) {
			return fakeserver.ByTextContaining(part), nil
		}},
		{"search", func(_ *world, words string) (fakeserver.Matcher, *refusal) { return bySearch(words), nil }},
	} {
		values, asked := r.query[f.name]
		if !asked {
			continue
		}
		m, refused := f.parse(w, values[0])
		if refused != nil {
			return nil, refused
		}
		all = append(all, m)
	}
	return all, nil
}

func byEndpoint(_ *world, name string) (m fakeserver.Matcher, _ *refusal) {
	var known []string
	for _, e := range spec.Endpoints {
		known = append(known, e.Method+" "+e.Path)
	}
	if refused := oneOf("endpoint", name, known); refused != nil {
		return m, refused
	}
	return fakeserver.ByEndpoint(fakeserver.Endpoint(name)), nil
}

// byStatus takes a status, or a digit and xx for a class of them: of what was
// sent, or of what the service decided.
func byStatus(_ *world, text string) (m fakeserver.Matcher, _ *refusal) {
	if class, is := strings.CutSuffix(text, "xx"); is && len(class) == 1 && class >= "1" && class <= "5" {
		hundreds := int(class[0] - '0')
		return fakeserver.Where(func(c fakeserver.Call) bool { return c.Sent.Status/100 == hundreds || c.Status/100 == hundreds }), nil
	}
	status, err := strconv.Atoi(text)
	if err != nil || status != 0 && (status < 100 || status > 999) {
		return m, badRequest("status", "must be a status such as 429, a class such as 4xx, or 0")
	}
	return fakeserver.Where(func(c fakeserver.Call) bool { return c.Sent.Status == status || c.Status == status }), nil
}

func byLabel(w *world, label string) (m fakeserver.Matcher, _ *refusal) {
	if label != fakeserver.KeyMissing && label != fakeserver.KeyUnknown {
		if _, refused := w.keyOf("key", label); refused != nil {
			return m, refused
		}
	}
	return fakeserver.Where(func(c fakeserver.Call) bool { return c.Key == label }), nil
}

// bySearch takes the words that a person types into a search field: each must
// stand somewhere in what the page shows of a call.
func bySearch(typed string) fakeserver.Matcher {
	words := strings.Fields(strings.ToLower(typed))
	return fakeserver.Where(func(c fakeserver.Call) bool {
		shown := strings.ToLower(strings.Join([]string{
			c.Path, c.Method, strconv.Itoa(c.Sent.Status), strconv.Itoa(c.Status), c.Key, c.TraceID, c.Code, c.Reason, c.LimitKey, c.Fault, legible(c.Body), legible(c.Sent.Body), legible(c.ReplyBody),
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
func (w *world) listCalls(r *request) (answer, *refusal) {
	matchers, refused := w.filter(r)
	if refused != nil {
		return answer{}, refused
	}
	limit, refused := r.number("limit", defaultListed, 1, maxListed)
	if refused != nil {
		return answer{}, refused
	}
	calls := w.fake.Calls(matchers...)
	newest := calls[max(0, len(calls)-limit):]
	return ok(map[string]any{"calls": viewsOfCalls(newest), "total": len(calls), "dropped": w.fake.Admin().DroppedCalls()})
}

const (
	defaultWait = "5s"
	maxWait     = 10 * time.Minute
)

// awaitCalls is GET calls/await. It waits without the world's lock.
func (w *world) awaitCalls(r *request) (answer, *refusal) {
	matchers, refused := w.filter(r)
	if refused != nil {
		return answer{}, refused
	}
	n, refused := r.number("n", 1, 1, maxListed)
	if refused != nil {
		return answer{}, refused
	}
	patience, refused := durationIn("timeout", or(r.query.Get("timeout"), defaultWait), maxWait)
	if refused != nil {
		return answer{}, refused
	}
	return answer{write: func(rw http.ResponseWriter, hr *http.Request) {
		w.await(rw, hr, n, patience, matchers)
	}}, nil
}

func (w *world) await(rw http.ResponseWriter, hr *http.Request, n int, patience time.Duration, matchers []fakeserver.Matcher) {
	ctx, cancel := context.WithTimeout(hr.Context(), patience)
	defer cancel()
	defer context.AfterFunc(w.gone, cancel)()
	calls, err := w.fake.AwaitCalls(ctx, n, matchers...)
	if err == nil {
		writeJSON(rw, http.StatusOK, map[string]any{"calls": viewsOfCalls(calls)})
		return
	}
	writeJSON(rw, http.StatusGatewayTimeout, struct {
		refusal
		Calls []callView `json:"calls"`
	}{refusal{Code: "timeout", Reason: err.Error()}, viewsOfCalls(calls)})
}

// archive is GET calls.har.
func (w *world) archive(*request) (answer, *refusal) {
	return answer{write: func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Content-Disposition", `attachment; filename="calls.har"`)
		_ = w.fake.WriteHAR(rw) // the client may be gone
	}}, nil
}
