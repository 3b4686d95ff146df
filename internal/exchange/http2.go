package exchange

import (
	"context"
	"crypto/tls"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// How many requests an HTTP/2 connection takes at a time is known when the
// service's SETTINGS have arrived; until then net/http assumes 100, and what is
// too many is refused when it has been written (RFC 9113, 5.1.2). So a new
// connection carries one request until its first answer.
//
// firstAnswerWait bounds how long the others wait for that: then the SETTINGS
// have come, though the answer takes its time. It also bounds how long one
// request may look for a connection before the others do so too.
const firstAnswerWait = 2 * time.Second

// useHTTP2 waits until the request may be written to conn, or refuses it. What is
// refused is not written: net/http looks at the context before.
func (rt *roundTrip) useHTTP2(conn *connection) {
	switch before := rt.conn.Swap(conn); {
	case rt.unseen(): // it is not sent again if it is refused
	case before != nil && rt.headers.Load() == 0:
		rt.refuse(full)
		return
	case conn.stalled() && rt.number <= maxTries/2: // perhaps no other takes it
		rt.refuse(stalled)
		return
	}
	first, err := conn.admit(rt.ctx)
	if first {
		rt.firstOn.Store(conn)
	}
	rt.answersBefore.Store(conn.answers.Load())
	if err != nil {
		rt.refuse(late)
	}
}

// admission is whether an HTTP/2 connection takes a request, or why not.
type admission int32

const (
	admitted admission = iota
	full               // net/http looks for another one
	stalled            // nothing comes back on it
	late               // its first answer did not come before the context ended
)

func (rt *roundTrip) refuse(why admission) {
	rt.admission.CompareAndSwap(int32(admitted), int32(why))
	rt.stop()
}

// connections are the HTTP/2 connections of all Senders, since several may share one: a
// *connection for each weak.Pointer[tls.Conn]. net/http lets go of them without a word.
var connections sync.Map

// connectionOf returns nil for a connection that is not HTTP/2.
func (q *dialQueue) connectionOf(conn *tls.Conn) *connection {
	if c, known := connections.Load(weak.Make(conn)); known {
		return c.(*connection)
	}
	if conn.ConnectionState().NegotiatedProtocol != "h2" {
		return nil
	}
	return q.add(conn)
}

// add has requests queue for a connection while this one is young.
func (q *dialQueue) add(conn *tls.Conn) *connection {
	var key any = weak.Make(conn)
	c, known := connections.LoadOrStore(key, newConnection())
	if !known {
		runtime.AddCleanup(conn, connections.Delete, key)
		q.reasonsToQueue.Add(1)
		time.AfterFunc(firstAnswerWait, func() {
			c.(*connection).share()
			q.reasonsToQueue.Add(-1)
		})
	}
	return c.(*connection)
}

// connection is what the requests on one HTTP/2 connection share.
type connection struct {
	firstToken chan struct{} // full while a request waits for the first answer
	shared     chan struct{} // closed when more than one request may use it
	share      func()        // closes shared
	answers    atomic.Int64  // that have begun to arrive
	silent     atomic.Int64  // requests that ended without one, since the last
}

func newConnection() *connection {
	shared := make(chan struct{})
	return &connection{firstToken: make(chan struct{}, 1), shared: shared, share: sync.OnceFunc(func() { close(shared) })}
}

// admit waits until a request may be written, and reports whether it is the first on the
// connection. Then it takes its token out when it ends without an answer. ctx bounds the
// wait.
func (c *connection) admit(ctx context.Context) (first bool, err error) {
	if c.answers.Load() > 0 { // as for nearly all: many at once would contend for the locks of select
		return false, nil
	}
	select {
	case <-c.shared:
		return false, nil
	case c.firstToken <- struct{}{}:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// answered counts an answer that has begun to arrive.
func (c *connection) answered() {
	c.answers.Add(1)
	c.silent.Store(0)
	c.share()
}

// stalledAfter is how many requests in a row end without a byte before a
// connection counts as stalled, while nothing else arrives on it. One may have
// been given up by its caller early.
const stalledAfter = 2

func (c *connection) stalled() bool { return c.silent.Load() >= stalledAfter }

// countSilent counts a request that ended without a byte. answers is what the
// connection had answered before it.
func (c *connection) countSilent(answers int64) {
	if c.answers.Load() == answers {
		c.silent.Add(1)
	}
}

// A dialQueue lets requests look for a connection one after the other, so that each
// sees what those before it have opened. net/http would dial for each.
type dialQueue struct {
	// Requests queue for a connection while reasonsToQueue is not 0. It counts the request
	// that looks for one, the connections that are younger than firstAnswerWait, and
	// unused.
	reasonsToQueue atomic.Int32
	mu             sync.Mutex
	unused         int32 // 1 until the first request has looked for a connection, then 0
	looking        bool
	waiting        []chan bool
}

// enter waits for the request's turn to look for a connection, which ends with
// leave. It reports false where there is no need for one.
func (q *dialQueue) enter(ctx context.Context) (turn bool, err error) {
	mine := q.push()
	if mine == nil {
		return true, nil
	}
	select {
	case turn = <-mine:
		return turn, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, mine); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return false, ctx.Err()
	}
	return <-mine, ctx.Err()
}

// push returns what the request has to wait for: its turn, or false where there is no
// need for one any more. It is nil if it is the request's turn now.
func (q *dialQueue) push() (mine chan bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.looking {
		q.looking = true
		q.reasonsToQueue.Add(1)
		return nil
	}
	mine = make(chan bool, 1)
	q.waiting = append(q.waiting, mine)
	return mine
}

// leave gives the turn to the next in the queue, or lets all go at once.
func (q *dialQueue) leave(all bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 {
		next := q.waiting[0]
		q.waiting = q.waiting[1:]
		next <- !all
		if !all {
			return
		}
	}
	q.looking = false
	q.reasonsToQueue.Add(-1 - q.unused)
	q.unused = 0
}
