package control

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// kinds are the kinds of state that a "state" event tells of and that can be read
// again. The others are "calls", after DELETE calls, and "reset".
var kinds = []string{"agents", "byok", "clock", "faults", "keys", "limits", "replies"}

// hub tells the streams that there is something new. It knows no
// stream: each reads calls from the fake and compares counts, at its own speed,
// so a slow reader costs no memory and never slows a call.
type hub struct {
	mu      sync.Mutex     // guards what follows
	changes map[string]int // counts the changes of each kind
	news    chan struct{}  // is closed at the next change or call, and replaced
}

func newHub() *hub {
	return &hub{changes: map[string]int{}, news: make(chan struct{})}
}

// changed tells of changes; without any, that there is a new call.
func (h *hub) changed(kinds ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, kind := range kinds {
		h.changes[kind]++
	}
	close(h.news)
	h.news = make(chan struct{})
}

// look returns the counts, and what is closed when they are old.
func (h *hub) look() (changes map[string]int, news <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.changes), h.news
}

// called hears each call of the service, before its client has the answer.
// A call tells of conversations and limits by itself.
func (h *hub) called(c *fakeserver.Call) {
	switch {
	case c.Status != http.StatusOK:
		h.changed()
	case c.Endpoint == fakeserver.EndpointCreateAgent, c.Endpoint == fakeserver.EndpointEnableSMS:
		h.changed("agents")
	case c.Endpoint == fakeserver.EndpointSetBYOK, c.Endpoint == fakeserver.EndpointClearBYOK:
		h.changed("byok")
	default:
		h.changed()
	}
}

const (
	heartbeat  = 3 * time.Second
	glance     = 500 * time.Millisecond // between two looks at the calls under way
	writeLimit = 30 * time.Second       // a reader that takes nothing for so long is gone; it can resume
	batch      = 100                    // calls between two looks at what else there is
)

// streamCalls is GET calls/stream.
func (s *Server) streamCalls(r *request) (any, error) {
	newest := s.admin().LastSeq()
	seq, last := r.number("after", newest, 0, noLimit), r.http.Header.Get("Last-Event-ID")
	if last != "" && number(0, noLimit)(last) != "" {
		r.refuse("Last-Event-ID", "must be the id of an event of this stream")
	}
	if r.flaw != nil {
		return nil, r.flaw
	}
	seen, _ := s.hub.look() // here, so that nothing is missed that follows this answer's first byte
	if last != "" {
		seq, _ = strconv.Atoi(last)
		for _, kind := range kinds { // one that resumes may have missed any
			seen[kind] = -1
		}
	}
	if seq > newest {
		seq = 0 // of an earlier run of the program: all is new
	}
	return stream(func(rw http.ResponseWriter, hr *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		rd := &reader{w: rw, control: http.NewResponseController(rw), seq: seq, seen: seen}
		s.follow(hr, rd)
	}), nil
}

// reader is one stream of server-sent events, and what it has told so far.
// Errors of writing show at the next flush.
type reader struct {
	w       io.Writer
	control *http.ResponseController
	seq     int // of the last call
	seen    map[string]int
	// underWay are the trace ids of the calls that were last reported as under way,
	// and sending the calls whose answer was not out when they were reported.
	underWay []string
	sending  []int
}

func (s *Server) follow(hr *http.Request, rd *reader) {
	beat, look := time.NewTicker(heartbeat), time.NewTicker(glance)
	defer beat.Stop()
	defer look.Stop()
	err := rd.comment("calls and changes")
	for err == nil {
		changes, news := s.hub.look()
		rd.tellChanges(changes)
		rd.reportUnderWay(s.fake.UnderWay())
		if err = s.catchUp(rd); err != nil {
			return
		}
		select {
		case <-hr.Context().Done():
			return
		case <-s.gone.Done():
			return
		case <-news:
		case <-look.C:
		case <-beat.C:
			err = rd.comment("still here")
		}
	}
}

// reportUnderWay sends the calls that nobody has had an answer to yet, whenever
// they are others than before.
func (rd *reader) reportUnderWay(calls []fakeserver.Call) {
	var traces []string
	for _, c := range calls {
		traces = append(traces, c.TraceID)
	}
	if !slices.Equal(traces, rd.underWay) {
		rd.underWay = traces
		rd.event("", "under_way", map[string]any{"calls": list(calls)})
	}
}

func (rd *reader) tellChanges(changes map[string]int) {
	for _, kind := range append(kinds, "calls", "reset") {
		if changes[kind] > rd.seen[kind] {
			rd.event("", "state", map[string]string{"what": kind})
		}
	}
	rd.seen = changes
}

// catchUp sends all calls that are new.
func (s *Server) catchUp(rd *reader) error {
	for {
		dropped := s.admin().DroppedCalls()
		calls := s.admin().CallsAfter(rd.seq, batch)
		if len(calls) > 0 && dropped > 0 && calls[0].Seq > rd.seq+1 {
			rd.event("", "gap", map[string]int{"missed": min(dropped, calls[0].Seq-rd.seq-1)})
		}
		for _, c := range calls {
			rd.event(strconv.Itoa(c.Seq), "call", c)
			rd.seq = c.Seq
			if c.Sent.Ended.IsZero() {
				rd.sending = append(rd.sending, c.Seq)
			}
		}
		s.catchUpWithSending(rd)
		if err := rd.control.Flush(); err != nil || len(calls) < batch {
			return err
		}
	}
}

// catchUpWithSending sends a call again once the whole of its answer is out, or
// nothing more of it can come.
func (s *Server) catchUpWithSending(rd *reader) {
	rd.sending = slices.DeleteFunc(rd.sending, func(seq int) bool {
		c, kept := s.keptCall(seq)
		if kept && c.Sent.Ended.IsZero() {
			return false
		}
		if kept {
			rd.event("", "call", c)
		}
		return true
	})
}

// event writes one event. JSON as Go encodes it holds no line feed.
func (rd *reader) event(id, name string, data any) {
	encoded, err := json.Marshal(data)
	if err != nil {
		panic(err) // the wire structs hold nothing that JSON does not
	}
	_ = rd.control.SetWriteDeadline(time.Now().Add(writeLimit))
	if id != "" {
		_, _ = fmt.Fprintf(rd.w, "id: %s\n", id)
	}
	_, _ = fmt.Fprintf(rd.w, "event: %s\ndata: %s\n\n", name, encoded)
}

func (rd *reader) comment(text string) error {
	_ = rd.control.SetWriteDeadline(time.Now().Add(writeLimit))
	_, _ = fmt.Fprintf(rd.w, ": %s\n\n", text)
	return rd.control.Flush()
}
