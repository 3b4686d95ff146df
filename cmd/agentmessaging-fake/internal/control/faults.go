package control

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
)

// faultSpec is a fault. Which members a kind takes stands in faultKinds.
type faultSpec struct {
	Kind        string     `json:"kind" check:"required"`
	Duration    *string    `json:"duration,omitempty" check:"delay"`
	Every       *string    `json:"every,omitempty" check:"delay"`
	Status      *int       `json:"status,omitempty" check:"status"`
	Body        *string    `json:"body,omitempty"`
	ContentType *string    `json:"content_type,omitempty" check:"header"`
	RetryAfter  *string    `json:"retry_after,omitempty" check:"header"`
	Bytes       *int       `json:"bytes,omitempty" check:"bytes"`
	How         *faultSpec `json:"how,omitempty"`
	Name        *string    `json:"name,omitempty" check:"named"`
}

// faultKind is a kind of fault: its required and its optional members, and how a
// fault is made from them.
type faultKind struct {
	name, needs, takes string
	instead            bool // of the call: a way to lose a reply too
	make               func(faultSpec) fakeserver.Fault
}

// faultKinds is a function since a table would refer to itself, through
// lose_reply.
func faultKinds() []faultKind {
	return []faultKind{
		{"latency", "duration", "", false, func(f faultSpec) fakeserver.Fault { return fakeserver.Latency(parsed(*f.Duration)) }},
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
		{"drip_reply", "bytes", "every", false, func(f faultSpec) fakeserver.Fault {
			return fakeserver.DripReply(*f.Bytes, parsed(given(f.Every)))
		}},
		{"go_away", "", "", false, func(faultSpec) fakeserver.Fault { return fakeserver.GoAway() }},
		{"named", "name", "", false, func(f faultSpec) fakeserver.Fault { named, _ := faults.Named(*f.Name); return named.Fault }},
	}
}

// find returns the row of a kind, and the names of all: or only of those that
// act instead of the call.
func (f *faultSpec) find(instead bool) (row faultKind, names []string) {
	for _, k := range faultKinds() {
		if instead && !k.instead {
			continue
		}
		names = append(names, k.name)
		if k.name == f.Kind {
			row = k
		}
	}
	return row, names
}

// fault is the fault itself, of what has no flaw.
func (f *faultSpec) fault() fakeserver.Fault {
	kind, _ := f.find(false)
	return kind.make(*f)
}

// members lists the given members without the kind.
func (f *faultSpec) members() (all []string) {
	v := reflect.ValueOf(*f)
	for i, m := range membersOf(v.Type())[1:] {
		if !v.Field(i + 1).IsNil() {
			all = append(all, m.name)
		}
	}
	return all
}

// flaw checks that the members fit the kind.
func (f *faultSpec) flaw(at string, instead bool) error {
	kind, names := f.find(instead)
	if kind.name == "" {
		return badRequest(at+".kind", "must be one of %s", listed(names))
	}
	needs, members := strings.Fields(kind.needs), f.members()
	takes := append(needs, strings.Fields(kind.takes)...)
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
	if f.Kind == "drip_reply" && *f.Bytes == 0 {
		return badRequest(at+".bytes", "must be from 1 for drip_reply")
	}
	if f.How != nil {
		return f.How.flaw(at+".how", true)
	}
	return nil
}

const maxHeader = 1024 // bytes of a header's value

// isHeader asks for what a header can hold.
func isHeader(text string) string {
	switch {
	case len(text) > maxHeader:
		return fmt.Sprintf("at most %d bytes", maxHeader)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "must hold no control character"
	}
	return ""
}

// newFault is the body of POST faults.
type newFault struct {
	Fault faultSpec  `json:"fault" check:"required"`
	Match faultMatch `json:"match"`
	From  int        `json:"from,omitempty" check:"turns"`
	turns
}

// faultMatch picks calls.
type faultMatch struct {
	Endpoint string `json:"endpoint,omitempty" check:"endpoint"`
	match
}

func (b newFault) flaw() error {
	if err := b.Fault.flaw("fault", false); err != nil {
		return err
	}
	return b.turns.flaw()
}

type faultView struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	newFault
	Hits int `json:"hits"`
}

// listFaults is GET faults.
func (s *Server) listFaults(*request) (any, error) { return s.faults.shown("faults") }

// addFault is POST faults.
func (s *Server) addFault(body newFault) (any, error) {
	if err := s.faults.full(); err != nil {
		return nil, err
	}
	matchers, err := body.Match.matchers(s)
	if err != nil {
		return nil, err
	}
	if body.Match.Endpoint != "" {
		matchers = append(matchers, fakeserver.ByEndpoint(fakeserver.Endpoint(body.Match.Endpoint)))
	}
	return s.inject(body, matchers...), nil
}

// inject puts a fault in force, and returns its view.
func (s *Server) inject(made newFault, matchers ...fakeserver.Matcher) any {
	fault := made.Fault.fault()
	closed, open := gate()
	in := s.fake.Inject(fault, append(matchers, closed)...)
	apply(in, made.turns, s.options.Seed)
	if made.From > 0 {
		in.From(made.From)
	}
	open()
	view := func(id string) any { return faultView{id, fault.String(), made, in.Hits()} }
	return s.faults.add(item{view: view, unmet: func() bool { return made.unmet(in.Hits()) }, remove: in.Remove})
}

// removeFaults is DELETE faults.
func (s *Server) removeFaults(*request) (any, error) {
	s.faults.clear()
	return nil, nil
}

// removeFault is DELETE faults/{id}.
func (s *Server) removeFault(r *request) (any, error) { return s.faults.drop(r) }
