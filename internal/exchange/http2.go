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

// This file keeps HTTP/2 connections from refusing a request after it was written, which
// would leave the outcome of a POST unknown.
//
// The service's SETTINGS say how many requests a connection takes at a time. Until the
// SETTINGS arrive, net/http assumes 100. If the limit is lower, the service refuses
// requests that net/http has already written (RFC 9113, 5.1.2). So a new connection
// carries one request until its first answer (connection.admit), and requests look for a
// connection one after the other, so that each can share one (dialQueue).

// firstAnswerWait bounds how long other requests wait for the first answer on a connection. The
// answer may take longer, but by then the SETTINGS have come. firstAnswerWait also bounds a
// request's turn to look for a connection. A request waits for neither for more than half of the
// time that it has left, so that a slow answer, or a dial that hangs, does not make it fail unsent.
const firstAnswerWait = 2 * time.Second

// connections maps a weak.Pointer[tls.Conn] to its *connection. It holds the HTTP/2
// connections of all Senders, because several Senders may share a connection. The pointer
// is weak, because net/http does not report when it drops a connection.
var connections sync.Map

// connectionOf returns the state of a connection. It makes a new state if the connection
// is not known, and returns nil if the connection is not HTTP/2.
func (q *dialQueue) connectionOf(conn *tls.Conn) *connection {
	if c, known := connections.Load(weak.Make(conn)); known {
		return c.(*connection)
	}
	if conn.ConnectionState().NegotiatedProtocol != "h2" {
		return nil
	}
	return q.add(conn)
}

// add adds the state of a connection that is not known yet. While the connection is
// younger than firstAnswerWait, requests use the queue.
func (q *dialQueue) add(conn *tls.Conn) *connection {
	var key any = weak.Make(conn)
	c, known := connections.LoadOrStore(key, newConnection())
	if !known {
		runtime.AddCleanup(conn, connections.Delete, key)
		q.pending.Add(1)
		time.AfterFunc(firstAnswerWait, func() {
			c.(*connection).share()
			q.pending.Add(-1)
		})
	}
	return c.(*connection)
}

// connection holds the state that the requests on one HTTP/2 connection share.
type connection struct {
	firstToken chan struct{} // has a token while the first request is on its way
	shared     chan struct{} // closed once more than one request may use the connection
	share      func()        // closes shared
	hasAnswer  atomic.Bool   // an answer has begun to arrive
}

func newConnection() *connection {
	shared := make(chan struct{})
	return &connection{firstToken: make(chan struct{}, 1), shared: shared, share: sync.OnceFunc(func() { close(shared) })}
}

// admit waits until a request may be written, at most half of the time to ctx's deadline. It
// reports whether the request is the first on the connection. If so, call endFirst when it ends.
func (c *connection) admit(ctx context.Context) (first bool, err error) {
	if c.hasAnswer.Load() { // true for nearly all requests, which would contend for the locks of select
		return false, nil
	}
	select {
	case <-c.shared:
		return false, nil
	case <-halfTime(ctx):
		return false, nil
	case c.firstToken <- struct{}{}:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// halfTime returns a channel that gets a value when half of the time to ctx's deadline is over.
func halfTime(ctx context.Context) <-chan time.Time {
	deadline, _ := ctx.Deadline() // each try has one
	return time.After(time.Until(deadline) / 2)
}

// endFirst ends the first request. If it had no answer, another request is the first now.
func (c *connection) endFirst() { <-c.firstToken }

// noteAnswer notes that an answer has begun to arrive.
func (c *connection) noteAnswer() {
	c.hasAnswer.Store(true)
	c.share()
}

// A dialQueue lets requests look for a connection one after the other, so that each can
// share an HTTP/2 connection that one before it opened. Without it, net/http would dial
// for each.
type dialQueue struct {
	// pending counts the reasons to wait for a connection to share: the request that has the
	// turn, each connection younger than firstAnswerWait, and untried. While pending is 0,
	// requests skip the queue.
	pending atomic.Int32
	mu      sync.Mutex  // guards what follows
	untried bool        // until the first turn ends
	taken   bool        // a request has the turn
	waiting []chan bool // a channel for each waiting request; it receives true for a turn, or false if no turn is needed
}

// enter waits for the request's turn to look for a connection, at most half of the time to ctx's
// deadline. leave ends the turn. enter reports false if the request need not wait for a turn any
// more, or that time or ctx has ended first.
func (q *dialQueue) enter(ctx context.Context) (turn bool) {
	turnCh := q.push()
	if turnCh == nil {
		return true
	}
	select {
	case turn = <-turnCh:
		return turn
	case <-halfTime(ctx):
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, turnCh); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return false
	}
	return <-turnCh
}

// push puts the request into the queue, and returns the channel from which it gets its
// turn; nil if it has the turn now.
func (q *dialQueue) push() (turnCh chan bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.taken {
		q.taken = true
		q.pending.Add(1)
		return nil
	}
	turnCh = make(chan bool, 1)
	q.waiting = append(q.waiting, turnCh)
	return turnCh
}

// leave ends a turn. If the turn has found a connection to share, the next request in the queue
// gets the turn. Otherwise all waiting requests go on without one.
func (q *dialQueue) leave(found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 {
		next := q.waiting[0]
		q.waiting = q.waiting[1:]
		next <- found
		if found {
			return
		}
	}
	q.taken = false
	q.pending.Add(-1)
	if q.untried {
		q.untried = false
		q.pending.Add(-1)
	}
}
