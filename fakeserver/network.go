package fakeserver

import (
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// network is the connections of one client. All of it belongs to the bubble
// that the client was made in.
type network struct {
	server    *Server
	tb        TB // nil: Close hangs up
	handler   http.Handler
	config    clientConfig
	transport *http.Transport

	mu    sync.Mutex
	open  map[*link]bool
	ended bool // hung up: nothing more is dialled
}

// link is one connection with its server.
type link struct {
	dialled *conn
	done    chan struct{}            // closed when the server is done
	call    atomic.Pointer[Endpoint] // under way; nil: none
}

// clientOf returns a client of a handler: of the fake, but in tests of the
// connection itself.
func (s *Server) clientOf(h http.Handler, tb TB, c clientConfig) *http.Client {
	n := &network{server: s, tb: tb, handler: h, config: c, open: map[*link]bool{}}
	n.transport = &http.Transport{
		DialContext:         n.dial,
		MaxIdleConnsPerHost: 1000, // connections cost nothing here; the default of 2 makes them short-lived
	}
	if tb != nil {
		tb.Cleanup(n.hangUp)
	} else {
		s.mu.Lock()
		s.networks = append(s.networks, n)
		s.mu.Unlock()
	}
	return &http.Client{Transport: n.transport}
}

// dial makes a connection and a server for it. The server starts on the
// goroutine that dials, and so in the bubble of the client: a server shared by
// several clients would tie the fake to one bubble.
func (n *network) dial(_ context.Context, _, address string) (net.Conn, error) {
	if err := n.server.refuse("http", address); err != nil {
		return nil, err
	}
	client := net.TCPAddrFromAddrPort(n.server.nextAddr(n.config.ip))
	dialled, accepted := newConns(client, dialledAddr(host))
	l := &link{dialled: dialled, done: make(chan struct{})}
	accepted.closed = func() { n.forget(l); close(l.done) }
	if !n.remember(l) {
		return nil, dialError(address, errClosed)
	}
	serve(l.watched(n.handler), accepted)
	return &clientConn{dialled, n.server}, nil
}

// clientConn is the client's end of a connection. It sends nothing to a fake
// that is closed: net/http then dials anew, and is refused there. Close may be
// called from outside the bubble of the client, so it cannot do more than that.
type clientConn struct {
	*conn
	server *Server
}

// Now is the clock that clients with a cool-down look for in a connection.
func (c *clientConn) Now() time.Time { return c.server.now() }

func (c *clientConn) Write(p []byte) (int, error) {
	if c.server.closed.Load() {
		return 0, c.wrap("write", errClosed)
	}
	return c.conn.Write(p)
}

// watched is a handler that shows which call is under way on the connection.
func (l *link) watched(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := Endpoint("a call to no endpoint")
		// Not the path: a key may stand in it.
		if route, _, _ := find(r.Method, r.URL.EscapedPath()); route != nil {
			name = route.name
		}
		l.call.Store(&name)
		defer l.call.Store(nil)
		h.ServeHTTP(w, r)
	})
}

// remember keeps a connection for hangUp, and reports false behind it.
func (n *network) remember(l *link) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ended {
		n.open[l] = true
	}
	return !n.ended
}

func (n *network) forget(l *link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, l)
}

// patience is how long hangUp waits before it says for what.
const patience = 5 * time.Second

// hangUp closes all connections and waits for their servers, and so for the
// calls that are under way and do not watch their context.
func (n *network) hangUp() {
	open := n.end()
	if len(open) == 0 {
		return
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for _, l := range open {
		select {
		case <-l.done:
			continue
		case <-late.C: // once
			n.tb.Logf("fakeserver: the cleanup of HTTPClient waits for calls under way, whose callback or fault does not return: %s", calling(open))
		}
		<-l.done
	}
}

// calling names the calls that are under way.
func calling(open []*link) string {
	var names []string
	for _, l := range open {
		if name := l.call.Load(); name != nil {
			names = append(names, string(*name))
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// hanging is a network as the Server knows it: without its channels, which
// belong to a bubble.
type hanging interface{ hangUpIdle() }

// hangUpIdle closes all connections, and waits for the servers of those without
// a call under way: it may itself run in a callback of such a call.
func (n *network) hangUpIdle() {
	for _, l := range n.end() {
		if l.call.Load() == nil {
			<-l.done
		}
	}
}

// end stops dialling, closes what is open, and returns it.
func (n *network) end() []*link {
	n.transport.CloseIdleConnections()
	n.mu.Lock()
	n.ended = true
	open := slices.Collect(maps.Keys(n.open))
	n.mu.Unlock()
	for _, l := range open {
		_ = l.dialled.Close()
	}
	return open
}
