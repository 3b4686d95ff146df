package fakeserver

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// What Call.Key says where a call had no key that this fake issued.
const (
	KeyMissing = "missing" // no Authorization header, or not one bearer token
	KeyUnknown = "unknown" // a bearer token that is no key of this fake
)

// Call is one call as it was made and answered. It holds no key, and no text
// of a message, reply or system prompt unless WithMessageTexts: it may be
// printed.
type Call struct {
	Time     time.Time // of arrival, by the fake's clock
	Endpoint Endpoint  // "" when no endpoint has the method and path
	Method   string
	Path     string // as it was sent, still escaped, without a query; at most 256 bytes
	AgentID  string // the path's {agent_id}; "" when it has none
	Key      string // label of the API key, such as key_000001; or KeyMissing or KeyUnknown
	Address  string // the client's IP address
	Header   http.Header
	// Body is the request body, at most 64 KiB of it: empty when the endpoint
	// takes none, or when it was refused as malformed.
	Body      string
	BodyBytes int // size of the body as it was sent; of one over 1 MiB, what was read

	Status    int    // 0 when the connection was aborted in place of an answer
	Code      string // the error of an error's body
	LimitKey  string // which limiter refused the call
	ReplyBody string // at most 64 KiB
	TraceID   string // as in the answer; in the order of arrival
}

// String is the call in one line.
func (c Call) String() string {
	line := fmt.Sprintf("%s %s %s %s: %d", c.TraceID, c.Method, c.Path, c.Key, c.Status)
	if c.Code != "" {
		line += " " + c.Code
	}
	if c.LimitKey != "" {
		line += " (" + c.LimitKey + ")"
	}
	return line
}

// record is a call with what matchers need and nobody is shown. It does not
// change once it is in the journal.
type record struct {
	call    Call
	hasKey  bool
	token   digest
	hasText bool
	text    string
}

func (r *record) copied() Call {
	c := r.call
	c.Header = c.Header.Clone()
	return c
}

// maxRecordedPath bounds a foreign path.
const maxRecordedPath = 256

func newRecord(r *http.Request, req *request) *record {
	path := scrub(r.URL.EscapedPath(), req.bearer)
	rec := &record{hasKey: req.hasKey, token: req.token, call: Call{
		Time:    req.now,
		Method:  r.Method,
		Path:    path[:min(len(path), maxRecordedPath)],
		AgentID: scrub(req.agentID, req.bearer),
		Address: req.ip.String(),
		Header:  redactHeader(r.Header, req.bearer),
	}}
	if req.route != nil {
		rec.call.Endpoint = req.route.name
	}
	return rec
}

func clip(body string) string { return body[:min(len(body), maxRecordedBody)] }

// keep completes the record of a call and puts it into the journal.
func (s *Server) keep(req *request, a answer) {
	c := &req.record.call
	c.Status, c.Code, c.LimitKey = a.status, a.code, a.limitKey
	c.ReplyBody = clip(scrub(a.shown, req.bearer))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.journal.add(req.record)
}

// journal is a ring of the newest calls.
type journal struct {
	limit   int
	kept    []*record
	oldest  int // where the ring starts, once it is full
	dropped int
}

func (j *journal) add(r *record) {
	switch {
	case len(j.kept) < j.limit:
		j.kept = append(j.kept, r)
		return
	case j.limit > 0:
		j.kept[j.oldest] = r
		j.oldest = (j.oldest + 1) % j.limit
	}
	j.dropped++
}

func (j *journal) all() []*record { return slices.Concat(j.kept[j.oldest:], j.kept[:j.oldest]) }

// matching returns the kept calls that all matchers match. Matchers run on a
// snapshot without the lock.
func (s *Server) matching(method string, matchers []Matcher) []*record {
	checkMatchers(method, matchers)
	s.mu.Lock()
	all := s.world.journal.all()
	s.mu.Unlock()
	return slices.DeleteFunc(all, func(r *record) bool { return !matchesAll(matchers, r) })
}

// Calls returns copies of the calls so far that all matchers match, in the
// order in which they were answered: the newest 1,000, or WithCallLimit. A
// call is in it, complete, before its client has the answer.
func (s *Server) Calls(matchers ...Matcher) []Call {
	records := s.matching("Calls", matchers)
	calls := make([]Call, len(records))
	for i, r := range records {
		calls[i] = r.copied()
	}
	return calls
}

// CallCount is the number of calls that Calls would return.
func (s *Server) CallCount(matchers ...Matcher) int { return len(s.matching("CallCount", matchers)) }

// DroppedCalls is how many older calls Calls no longer has: with CallCount()
// it makes the number of all calls.
func (s *Server) DroppedCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.journal.dropped
}

// maxTranscript is how many calls a failed test shows.
const maxTranscript = 50

// transcribe logs the newest calls of a test that failed.
func (s *Server) transcribe() {
	if s.tb == nil || !s.tb.Failed() {
		return
	}
	s.tb.Helper()
	calls := s.Calls()
	for _, c := range calls[max(0, len(calls)-maxTranscript):] {
		s.tb.Logf("fakeserver: %s", c)
	}
}
