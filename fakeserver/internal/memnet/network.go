package memnet

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// network holds the connections of one client. It belongs to the bubble in
// which the client was made.
type network struct {
	host      *Host
	tb        TB // nil: Host.Close hangs up
	ip        netip.Addr
	transport *http.Transport

	mu    sync.Mutex // guards what follows
	open  map[*link]bool
	ended bool // no more connections are made
}

type link struct {
	dialled *conn
	done    chan struct{}          // closed when the server is done
	call    atomic.Pointer[string] // the name of the call under way; nil means none
}

// dial makes a connection and a server for it. The server starts on the
// goroutine that dials, and so in the bubble of the client. One server for all
// clients would tie the host to one bubble.
func (n *network) dial(_ context.Context, _, address string) (net.Conn, error) {
	if err := n.host.refuse("https", address); err != nil {
		return nil, err
	}
	client := net.TCPAddrFromAddrPort(n.host.nextAddr(n.ip))
	dialled, accepted := newConns(client, self)
	l := &link{dialled: dialled, done: make(chan struct{})}
	accepted.closed = func() { n.forget(l); close(l.done) }
	if !n.remember(l) {
		return nil, dialError(self, n.host.errClosed())
	}
	serve(n.watched(l), accepted)
	return &clientConn{dialled, n.host}, nil
}

// proxy is where net/http asks about each request before it looks for a
// connection. There is no proxy.
func (n *network) proxy(req *http.Request) (*url.URL, error) { return nil, n.host.refusal(req, n.ip) }

// dialHTTP refuses: the host is reached as https.
func (n *network) dialHTTP(_ context.Context, _, address string) (net.Conn, error) {
	return nil, n.host.refuse("http", address)
}

// clientConn is the client's end of a connection. It sends nothing to a closed
// host: net/http then dials again, and that dial is refused. Host.Close may run
// outside the bubble of the client, so it cannot close the connection itself.
type clientConn struct {
	*conn
	host *Host
}

func (c *clientConn) Write(p []byte) (int, error) {
	if c.host.closed.Load() {
		return 0, c.wrap("write", c.host.errClosed())
	}
	return c.conn.Write(p)
}

// watched is the host's handler. It notes on the link which call is under way.
func (n *network) watched(l *link) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := n.host.Describe(r)
		l.call.Store(&name)
		defer l.call.Store(nil)
		n.host.Handler.ServeHTTP(w, r)
	})
}

// remember keeps a connection for hangUp. It reports false if hangUp has run
// already.
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

// patience is how long hangUp waits in silence.
const patience = 5 * time.Second

// hangUp closes all connections and waits for their servers, and so for calls
// that ignore their context.
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
			n.tb.Logf("%s: the cleanup of a client waits for calls under way that do not return: %s", n.host.Name, calling(open))
		}
		<-l.done
	}
}

func calling(open []*link) string {
	var names []string
	for _, l := range open {
		if name := l.call.Load(); name != nil {
			names = append(names, *name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// hangUpIdle closes all connections, and waits only for the servers without a
// call under way: it may itself run in a callback of such a call.
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
