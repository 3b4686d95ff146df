package fakeserver

import (
	"slices"
	"sort"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// ring keeps the newest items. Adding an item costs the same however many it
// holds.
type ring[T any] struct {
	kept    []T
	oldest  int // the index of the oldest item, once the ring is full
	dropped int
}

// add keeps an item. Once there are limit items, it drops the oldest. limit is
// the same at each call.
func (r *ring[T]) add(item T, limit int) {
	switch {
	case len(r.kept) < limit:
		r.kept = append(r.kept, item)
		return
	case limit > 0:
		r.kept[r.oldest] = item
		r.oldest = (r.oldest + 1) % limit
	}
	r.dropped++
}

// all returns a copy of the items, oldest first.
func (r *ring[T]) all() []T { return slices.Concat(r.kept[r.oldest:], r.kept[:r.oldest]) }

// since returns a copy of the new items, oldest first. isNew holds for every
// item behind the first new one.
func (r *ring[T]) since(isNew func(T) bool) []T {
	at := func(i int) T { return r.kept[(r.oldest+i)%len(r.kept)] }
	first := sort.Search(len(r.kept), func(i int) bool { return isNew(at(i)) })
	found := make([]T, 0, len(r.kept)-first)
	for i := first; i < len(r.kept); i++ {
		found = append(found, at(i))
	}
	return found
}

// total counts the items that were ever added.
func (r *ring[T]) total() int { return len(r.kept) + r.dropped }

// keep completes the record of a call, puts it into the log, and shows it
// to watchers. A new AwaitCalls either finds the call in the log or is shown
// it: both happen under the lock.
func (s *Server) keep(req *request, decided, out answer) {
	s.touches.Add(1)
	s.complete(req, decided)
	s.completeSent(req, out)
	var watchers []*watcher
	s.locked(func(*world) {
		s.answered++
		req.record.call.Seq = s.answered
		req.world.log.add(req.record, s.config.callLimit)
		watchers = s.watchers
	})
	for _, w := range watchers {
		if w.since <= req.world.resets {
			s.show(w, req.record)
		}
	}
}

func (s *Server) complete(req *request, a answer) {
	c := &req.record.call
	c.Status = a.Status
	c.Took = max(0, s.now().Sub(c.Time)) // somebody may set the machine's clock back
	c.ReplyBody = s.shownReply(req, a, a.Body)
}

// completeSent records what will be sent. Where the client leaves before, it
// gets less.
func (s *Server) completeSent(req *request, out answer) {
	call := &req.record.call
	if req.fault != nil && req.fault.phase == beforeConnecting {
		call.Sent.Broke = refused
		return
	}
	d := req.delivery(out)
	part, whole := d.Part(out.Body)
	if !whole {
		call.Sent.Broke = breaks[d.Ends]
		if d.Sent == memnet.Nothing {
			return
		}
	}
	call.Sent.Status, call.Sent.Bytes, call.Sent.Body = out.Status, len(part), call.ReplyBody
	ofTest := req.fault != nil && req.fault.canned != nil
	if ofTest || !whole {
		call.Sent.Body = s.shownReply(req, out, part)
	}
	call.Sent.Header = sentHeader(out.Header, ofTest && !s.config.messageTexts)
}

// delivery says how an answer leaves. Where a callback of the test panicked, there
// is no answer, and the connection closes.
func (req *request) delivery(out answer) memnet.Delivery {
	switch {
	case req.fault != nil:
		return req.fault.delivery
	case out.Status == 0:
		return clientGone.delivery
	}
	return memnet.Delivery{}
}

// shownReply is a body, or the part of it that was sent, as Calls shows it.
func (s *Server) shownReply(req *request, a answer, part []byte) string {
	body := mask.Body{Texts: s.config.messageTexts, Secrets: req.secrets, Foreign: a.foreign, Known: isReplyMember}
	return mask.Clip(body.Of(part), spec.KeptBody)
}

// isReplyMember reports whether the strings of a member of an answer may be
// recorded, whoever wrote the answer.
func isReplyMember(member string) bool { return slices.Contains(replyMembers, member) }

var replyMembers = []string{
	"error", "reason", "limit_key", "trace_id", "status", "agent_id", "service", "version", "mode", "provider",
}

func (s *Server) records() []*record {
	return look(s, func(w *world) []*record { return w.log.all() })
}

// matching returns the kept calls that all matchers match. Matchers run on a
// snapshot without the lock.
func (s *Server) matching(method string, matchers []Matcher) []*record {
	checkMatchers(method, matchers)
	return slices.DeleteFunc(s.records(), func(r *record) bool { return !matchesAll(matchers, r) })
}

func copiedCalls(records []*record) []Call {
	calls := make([]Call, len(records))
	for i, r := range records {
		calls[i] = r.copied()
	}
	return calls
}

// Calls returns copies of the calls that all matchers match, in the order in
// which they were answered: the newest 1,000, or WithCallLimit. A call is
// complete here before its client has the answer.
func (s *Server) Calls(matchers ...Matcher) []Call {
	return copiedCalls(s.matching("Calls", matchers))
}

// CallCount counts the calls that Calls would return.
func (s *Server) CallCount(matchers ...Matcher) int { return len(s.matching("CallCount", matchers)) }
