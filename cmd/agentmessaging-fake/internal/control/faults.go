package control

import (
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/catalog"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// faultSpec is a fault. Which members a kind takes stands in faultKinds.
type faultSpec struct {
	Kind        string     `json:"kind" check:"required"`
	Duration    *string    `json:"duration,omitempty"`
	Every       *string    `json:"every,omitempty"`
	Status      *int       `json:"status,omitempty"`
	Body        *string    `json:"body,omitempty"`
	ContentType *string    `json:"content_type,omitempty"`
	RetryAfter  *string    `json:"retry_after,omitempty"`
	Bytes       *int       `json:"bytes,omitempty"`
	How         *faultSpec `json:"how,omitempty"`
	Name        *string    `json:"name,omitempty"`
}

// faultKind is a kind of fault: the members that it needs, those that it takes
// besides, and how it is made of them.
type faultKind struct {
	name     string
	needs    string
	takes    string
	instead  bool // of the call: a way to lose a reply too
	fakeFrom func(faultSpec) fakeserver.Fault
}

// faultKinds is a function since a table would refer to itself, through
// lose_reply.
func faultKinds() []faultKind {
	return []faultKind{
		{"latency", "duration", "", false, func(f faultSpec) fakeserver.Fault { return fakeserver.Latency(duration(f.Duration)) }},
		{"answer", "status", "body", true, func(f faultSpec) fakeserver.Fault { return fakeserver.Answer(*f.Status, given(f.Body)) }},
		{"raw_answer", "status", "body content_type", true, func(f faultSpec) fakeserver.Fault {
			return fakeserver.RawAnswer(*f.Status, given(f.ContentType), given(f.Body))
		}},
		{"rate_limited", "", "retry_after", true, func(f faultSpec) fakeserver.Fault { return fakeserver.RateLimited(given(f.RetryAfter)) }},
		{"hang", "", "", true, func(faultSpec) fakeserver.Fault { return fakeserver.Hang() }},
		{"close_early", "", "", true, func(faultSpec) fakeserver.Fault { return fakeserver.CloseEarly() }},
		{"reset_connection", "", "", true, func(faultSpec) fakeserver.Fault { return fakeserver.ResetConnection() }},
		{"lose_reply", "how", "", false, func(f faultSpec) fakeserver.Fault { return fakeserver.LoseReply(f.How.fault()) }},
		{"truncate_reply", "bytes", "", false, func(f faultSpec) fakeserver.Fault { return fakeserver.TruncateReply(*f.Bytes) }},
		{"reset_reply", "bytes", "", false, func(f faultSpec) fakeserver.Fault { return fakeserver.ResetReply(*f.Bytes) }},
		{"drip_reply", "bytes", "every", false, func(f faultSpec) fakeserver.Fault { return fakeserver.DripReply(*f.Bytes, duration(f.Every)) }},
		{"go_away", "", "", false, func(faultSpec) fakeserver.Fault { return fakeserver.GoAway() }},
		{"named", "name", "", false, func(f faultSpec) fakeserver.Fault { named, _ := catalog.Named(*f.Name); return named.Fault }},
	}
}

const (
	maxDelay  = time.Hour
	maxBytes  = 1 << 20
	maxHeader = 1024 // bytes of a header's value
)

// duration is that of a member without a flaw, 0 where it is not given.
func duration(member *string) time.Duration {
	d, _ := time.ParseDuration(given(member))
	return d
}

func delay(name string, member *string) (refused *refusal) {
	if member != nil {
		_, refused = durationIn(name, *member, maxDelay)
	}
	return refused
}

// find returns the row of a kind, and the names of all.
func (f *faultSpec) find() (row faultKind, names []string) {
	for _, k := range faultKinds() {
		names = append(names, k.name)
		if k.name == f.Kind {
			row = k
		}
	}
	return row, names
}

func (f *faultSpec) given() (members []string) {
	for _, m := range []struct {
		name string
		is   bool
	}{
		{"duration", f.Duration != nil}, {"every", f.Every != nil}, {"status", f.Status != nil}, {"body", f.Body != nil}, {"content_type", f.ContentType != nil},
		{"retry_after", f.RetryAfter != nil}, {"bytes", f.Bytes != nil}, {"how", f.How != nil}, {"name", f.Name != nil},
	} {
		if m.is {
			members = append(members, m.name)
		}
	}
	return members
}

// flaw checks what the functions of fakeserver panic for.
func (f *faultSpec) flaw(at string) *refusal {
	kind, names := f.find()
	if kind.name == "" {
		return badRequest(at+".kind", "must be one of %s", listed(names))
	}
	needs := strings.Fields(kind.needs)
	takes := append(needs, strings.Fields(kind.takes)...)
	members := f.given()
	for _, m := range members {
		if !slices.Contains(takes, m) {
			return badRequest(at+"."+m, "%s does not take it; it takes: %s", f.Kind, listed(takes))
		}
	}
	for _, m := range needs {
		if !slices.Contains(members, m) {
			return badRequest(at+"."+m, "is required for %s", f.Kind)
		}
	}
	least := int64(0)
	if f.Kind == "drip_reply" {
		least = 1
	}
	return first(
		delay(at+".duration", f.Duration), delay(at+".every", f.Every), within(at+".status", f.Status, 200, 599), within(at+".bytes", f.Bytes, least, maxBytes),
		header(at+".content_type", f.ContentType), header(at+".retry_after", f.RetryAfter), f.How.flawOfHow(at+".how"),
		named(at+".name", f.Name),
	)
}

// named refuses what is no fault of the catalog.
func named(at string, name *string) *refusal {
	if name == nil {
		return nil
	}
	_, names := catalog.Named(*name)
	return oneOf(at, *name, names)
}

// flawOfHow checks the way in which a reply is lost.
func (f *faultSpec) flawOfHow(at string) *refusal {
	if f == nil {
		return nil
	}
	var ways []string
	for _, k := range faultKinds() {
		if k.instead {
			ways = append(ways, k.name)
		}
	}
	if refused := oneOf(at+".kind", f.Kind, ways); refused != nil {
		return refused
	}
	return f.flaw(at)
}

// header refuses what no header can hold.
func header(name string, value *string) *refusal {
	switch {
	case value == nil:
		return nil
	case len(*value) > maxHeader:
		return badRequest(name, "at most %d bytes", maxHeader)
	case strings.ContainsFunc(*value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return badRequest(name, "must hold no control character")
	}
	return nil
}

// faultRule is the body of POST faults.
type faultRule struct {
	Fault faultSpec  `json:"fault" check:"required"`
	Match faultMatch `json:"match"`
	From  *int       `json:"from,omitempty"`
	turns
}

type faultView struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	faultRule
	Hits int `json:"hits"`
}

func viewOfFault(r rule[faultRule]) faultView {
	return faultView{r.id, r.made.Fault.fault().String(), r.made, r.hits()}
}

// fault is the fault itself, of what has no flaw.
func (f *faultSpec) fault() fakeserver.Fault {
	kind, _ := f.find()
	return kind.fakeFrom(*f)
}

// inject puts a fault in force.
func (w *world) inject(made faultRule, f fakeserver.Fault, matchers ...fakeserver.Matcher) rule[faultRule] {
	closed, open := gate()
	in := w.fake.Inject(f, append(matchers, closed)...)
	apply(in, made.turns, w.server.options.Seed)
	if made.From != nil {
		in.From(*made.From)
	}
	open()
	return w.faults.add(made, in.Hits, in.Remove)
}

// listFaults is GET faults.
func (w *world) listFaults(*request) (answer, *refusal) {
	views := []faultView{}
	for _, r := range w.faults.list {
		views = append(views, viewOfFault(r))
	}
	return ok(map[string]any{"faults": views})
}

// fittingFault is a fault of the catalog, to be made by its name.
type fittingFault struct {
	Name string `json:"name"`
	Says string `json:"says"`
}

// listFitting is GET fitting-faults: what can befall a call to an endpoint.
func (w *world) listFitting(r *request) (answer, *refusal) {
	values := r.query["endpoint"]
	if values == nil {
		return answer{}, badRequest("endpoint", "is required")
	}
	if _, refused := byEndpoint(w, values[0]); refused != nil {
		return answer{}, refused
	}
	fitting := []fittingFault{}
	for _, e := range spec.Endpoints {
		if e.Method+" "+e.Path != values[0] {
			continue
		}
		for _, f := range catalog.For(e) {
			if f.Name != catalog.Refused {
				fitting = append(fitting, fittingFault{f.Name, f.Says})
			}
		}
	}
	return ok(map[string]any{"faults": fitting})
}

// addFault is POST faults.
func (w *world) addFault(r *request) (answer, *refusal) {
	body, refused := decode[faultRule](r.body)
	if refused == nil {
		refused = first(body.Fault.flaw("fault"), within("from", body.From, 1, maxTurns), body.turns.flaw(), w.faults.full())
	}
	if refused != nil {
		return answer{}, refused
	}
	matchers, refused := body.Match.matchers(w)
	if refused != nil {
		return answer{}, refused
	}
	made := w.inject(body, body.Fault.fault(), matchers...)
	w.hub.changed(changedFaults)
	return created(viewOfFault(made))
}

// removeFault is DELETE faults/{id}.
func (w *world) removeFault(r *request) (answer, *refusal) {
	if refused := w.faults.remove(r); refused != nil {
		return answer{}, refused
	}
	w.hub.changed(changedFaults)
	return done()
}
