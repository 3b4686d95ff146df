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

// kinds are the kinds of state that a "state" event tells of, but for a reset,
// which cannot be read again.
var kinds = []string{"keys", "agents", "faults", "replies", "clock", "byok", "limits", "snapshots"}

// hub tells the streams of a world that there is something new. It holds
// nothing for them but which kinds of state have changed: calls they read from
// the fake, each at its own speed, so a slow reader costs no memory and never
// slows a call.
type hub struct {
	fake *fakeserver.Server

	mu      sync.Mutex
	readers map[*reader]bool
}

// reader is one stream.
type reader struct {
	wake chan struct{} // holds one: there is something new

	// The hub's lock guards what follows.
	seq     int // of the last call that was sent
	changed map[string]bool
}

func newHub(fake *fakeserver.Server) *hub { return &hub{fake: fake, readers: map[*reader]bool{}} }

// join makes a reader that has read up to a call. One that resumes may have
// missed changes of any kind.
func (h *hub) join(seq int, resumes bool) *reader {
	rd := &reader{wake: make(chan struct{}, 1), seq: seq, changed: map[string]bool{}}
	for _, what := range kinds {
		if resumes {
			rd.changed[what] = true
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers[rd] = true
	return rd
}

func (h *hub) leave(rd *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers, rd)
}

// each changes all readers and wakes them.
func (h *hub) each(change func(*reader)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for rd := range h.readers {
		change(rd)
		select {
		case rd.wake <- struct{}{}:
		default: // it is awake already
		}
	}
}

// changed tells all readers which kinds of state have changed.
func (h *hub) changed(kinds ...string) {
	h.each(func(rd *reader) {
		for _, kind := range kinds {
			rd.changed[kind] = true
		}
	})
}

// called is told of each call of the service, before its client has the answer.
// A call tells of conversations and limits by itself.
func (h *hub) called(c fakeserver.Call) {
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

// take empties the changes of a reader.
func (h *hub) take(rd *reader) (seq int, changed []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed = slices.Sorted(maps.Keys(rd.changed))
	clear(rd.changed)
	return rd.seq, changed
}

func (h *hub) sent(rd *reader, seq int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rd.seq = max(rd.seq, seq)
}

const (
	heartbeat  = 15 * time.Second
	writeLimit = 30 * time.Second // a reader that takes nothing for so long is gone; it can resume
	batch      = 100              // calls between two looks at what else there is
)

// streamCalls is GET calls/stream.
func (w *world) streamCalls(r *request) (any, error) {
	newest := w.fake.Admin().LastSeq()
	seq, last := r.number("after", newest, 0, noLimit), r.http.Header.Get("Last-Event-ID")
	if last != "" && number(0, noLimit)(last) != "" {
		r.refuse("Last-Event-ID", "must be the id of an event of this stream")
	}
	if r.flaw != nil {
		return nil, r.flaw
	}
	if last != "" {
		seq, _ = strconv.Atoi(last)
	}
	if seq > newest {
		seq = 0 // of an earlier run of the program: all is new
	}
	rd := w.hub.join(seq, last != "") // here, so that nothing is missed that follows this answer's first byte
	return stream(func(rw http.ResponseWriter, hr *http.Request) {
		defer w.hub.leave(rd)
		w.stream(rw, hr, rd)
	}), nil
}

func (w *world) stream(rw http.ResponseWriter, hr *http.Request, rd *reader) {
	rw.Header().Set("Content-Type", "text/event-stream")
	events := &events{rw, http.NewResponseController(rw)}
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	err := events.comment("calls and changes of world " + w.name)
	for err == nil {
		if err = w.catchUp(events, rd); err != nil {
			return
		}
		select {
		case <-hr.Context().Done():
			return
		case <-w.gone.Done():
			return
		case <-rd.wake:
		case <-ticker.C:
			err = events.comment("still here")
		}
	}
}

// catchUp sends all that is new.
func (w *world) catchUp(out *events, rd *reader) error {
	for {
		seq, changed := w.hub.take(rd)
		dropped := w.fake.Admin().DroppedCalls()
		calls := w.fake.Admin().CallsAfter(seq, batch)
		for _, what := range changed {
			out.event("", "state", map[string]string{"what": what})
		}
		if len(calls) > 0 && dropped > 0 && calls[0].Seq > seq+1 {
			out.event("", "gap", map[string]int{"missed": min(dropped, calls[0].Seq-seq-1)})
		}
		for _, c := range calls {
			out.event(strconv.Itoa(c.Seq), "call", c)
			w.hub.sent(rd, c.Seq)
		}
		if err := out.flush(); err != nil || len(calls) < batch {
			return err
		}
	}
}

// events writes server-sent events. Errors show at the next flush.
type events struct {
	w       io.Writer
	control *http.ResponseController
}

// event writes one event. JSON as Go encodes it holds no line feed.
func (e *events) event(id, name string, data any) {
	encoded, err := json.Marshal(data)
	if err != nil {
		panic(err) // the wire structs hold nothing that JSON does not
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(writeLimit))
	if id != "" {
		_, _ = fmt.Fprintf(e.w, "id: %s\n", id)
	}
	_, _ = fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", name, encoded)
}

func (e *events) comment(text string) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(writeLimit))
	_, _ = fmt.Fprintf(e.w, ": %s\n\n", text)
	return e.flush()
}

func (e *events) flush() error { return e.control.Flush() }
