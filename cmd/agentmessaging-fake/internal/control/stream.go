package control

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// feed wakes the streams when there is a new call, and when a kind of state has changed.
// It stores nothing for a stream. Each stream reads calls from the fake and compares
// counts at its own speed, so a slow reader costs no memory and never slows a call.
type feed struct {
	mu sync.Mutex // guards what follows
	// changes counts the changes of each kind. A count never decreases, so a stream that
	// compares counts misses no change.
	changes map[string]int
	// changed is closed at the next change or call, and replaced by a new channel. Any number
	// of streams can wait for it.
	changed chan struct{}
}

// wake wakes the streams, for a new call or with the kinds of state that have changed.
// The kinds are agents, byok, calls, clock, faults, keys, limits, replies and reset.
func (f *feed) wake(changed ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kind := range changed {
		f.changes[kind]++
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// current returns the counts, and a channel that is closed when they are out of date.
func (f *feed) current() (changes map[string]int, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.changes), f.changed
}

const (
	heartbeat     = 3 * time.Second        // between comments; if none comes, the page assumes that the connection is broken
	checkInterval = 500 * time.Millisecond // between two checks for calls that are under way
	writeTimeout  = 30 * time.Second       // for a reader that takes nothing: the program closes its connection, and it can connect again
)

// stream answers with the events from now on, as server-sent events: call for each call,
// state with the kind of state that has changed, under_way with the calls that have no
// answer yet, and gap if calls were dropped before they could be sent.
func (s *Server) stream(*request) (any, error) {
	return jsonapi.Stream(func(w http.ResponseWriter, r *http.Request) {
		seen, _ := s.feed.current() // read first, so that no change after the first byte of the answer is missed
		w.Header().Set("Content-Type", "text/event-stream")
		es := &eventStream{Server: s, w: w, control: http.NewResponseController(w), seq: s.admin.LastSeq(), seen: seen}
		es.follow(r.Context())
	}), nil
}

// eventStream is the answer to one reader, with the state of the events sent so far. Only
// the goroutine of the request uses it. An error of a write shows at the next flush.
type eventStream struct {
	*Server
	w       io.Writer
	control *http.ResponseController
	// seq is the number of the last call that was sent.
	seq int
	// seen are the counts of changes up to which the stream has sent events.
	seen map[string]int
	// underWay are the trace identifiers of the calls that were under way at the last
	// check.
	underWay []string
	// unfinished are the numbers of the calls that were sent before their answer had ended.
	unfinished []int
}

// follow sends events until the client leaves or the program ends. In each round it reads
// the counts of changes before the calls, so that a change in between wakes it again.
func (es *eventStream) follow(ctx context.Context) {
	// Three things end a pause: a change or call, the next check of the calls under way, and the
	// heartbeat.
	beat, check := time.NewTicker(heartbeat), time.NewTicker(checkInterval)
	defer beat.Stop()
	defer check.Stop()
	es.write(": calls and changes\n\n") // a reader ignores such a line, which shows that the connection works
	for {
		changes, changed := es.feed.current()
		es.sendChanges(changes)
		es.sendUnderWay()
		es.sendCalls()
		select {
		case <-ctx.Done():
			return
		case <-es.ended.Done():
			return
		case <-changed:
		case <-check.C:
		case <-beat.C:
			es.write(": still here\n\n")
		}
	}
}

// sendChanges sends each kind once, however often it has changed since the last round.
func (es *eventStream) sendChanges(changes map[string]int) {
	for _, kind := range slices.Sorted(maps.Keys(changes)) {
		if changes[kind] > es.seen[kind] {
			es.event("state", map[string]string{"what": kind})
		}
	}
	es.seen = changes
}

// sendUnderWay sends the calls under way if they have changed. The fake has no event for
// the arrival of a call, so follow calls sendUnderWay at least twice a second.
func (es *eventStream) sendUnderWay() {
	calls, traces := append([]fakeserver.Call{}, es.fake.UnderWay()...), []string(nil)
	for _, c := range calls {
		traces = append(traces, c.TraceID)
	}
	if !slices.Equal(traces, es.underWay) {
		es.underWay = traces
		es.event("under_way", map[string]any{"calls": calls})
	}
}

// batchSize is how many calls are copied at a time. Copies of all calls would double the
// memory in use.
const batchSize = 100

// sendCalls sends all new calls, and sends calls again whose answer has ended since. It
// flushes after each batch. If the connection fails, net/http ends the context.
func (es *eventStream) sendCalls() {
	for {
		// A stream that is far behind must not copy all calls at once.
		calls := es.admin.CallsAfter(es.seq, batchSize)
		es.reportGap(calls)
		for _, c := range calls {
			es.event("call", c)
			es.seq = c.Seq
			// The call's answer still drips or hangs. The call is sent again once the answer has
			// ended.
			if c.Sent.Ended.IsZero() {
				es.unfinished = append(es.unfinished, c.Seq)
			}
		}
		es.unfinished = slices.DeleteFunc(es.unfinished, es.sentWhole)
		if es.control.Flush() != nil || len(calls) < batchSize {
			return
		}
	}
}

// reportGap sends an event if numbers are missing before the next calls, because the fake has
// dropped calls before this stream read them. After a reset numbers are missing too, but then
// no call was dropped.
func (es *eventStream) reportGap(next []fakeserver.Call) {
	if dropped := es.admin.DroppedCalls(); dropped > 0 && len(next) > 0 && next[0].Seq > es.seq+1 {
		es.event("gap", map[string]int{"missed": min(dropped, next[0].Seq-es.seq-1)})
	}
}

// sentWhole sends a call again if its answer has ended. It reports whether the stream is
// done with the call, which is also so if the fake no longer keeps it.
func (es *eventStream) sentWhole(seq int) bool {
	found := es.admin.CallsAfter(seq-1, 1)
	if len(found) == 0 || found[0].Seq != seq {
		return true
	}
	if found[0].Sent.Ended.IsZero() {
		return false
	}
	es.event("call", found[0])
	return true
}

// event writes one event. Go's JSON holds no line feed but the one at its end. The empty line
// after that ends the event. event writes to w directly, because each reader of long texts
// would otherwise need a copy of them.
func (es *eventStream) event(name string, data any) {
	es.write("event: " + name + "\ndata: ")
	_ = json.NewEncoder(es.w).Encode(data)
	_, _ = io.WriteString(es.w, "\n")
}

// write writes a part of an event, or a comment. It gives the reader another 30 s, so that
// only a reader that takes nothing at all is given up.
func (es *eventStream) write(text string) {
	_ = es.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, _ = io.WriteString(es.w, text)
}
