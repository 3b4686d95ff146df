package memnet

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// network is the connections of one client. All of it belongs to the bubble
// that the client was made in.
type network struct {
	host      *Host
	tb        TB // nil: Host.Close hangs up
	ip        netip.Addr
	transport *http.Transport

	mu    sync.Mutex
	open  map[*link]bool
	ended bool // hung up: nothing more is dialled
}

// link is one connection with its server.
type link struct {
	dialled *conn
	done    chan struct{}          // closed when the server is done
	call    atomic.Pointer[string] // the name of what is under way; nil: nothing
}

// dial makes a connection and a server for it. The server starts on the
// goroutine that dials, and so in the bubble of the client: a server shared by
// several clients would tie the fake to one bubble.
func (n *network) dial(_ context.Context, _, address string) (net.Conn, error) {
	if err := n.host.refuse("https", address); err != nil {
		return nil, err
	}
	client := net.TCPAddrFromAddrPort(n.host.nextAddr(n.ip))
	dialled, accepted := newConns(client, addr(n.host.Addr))
	l := &link{dialled: dialled, done: make(chan struct{})}
	accepted.closed = func() { n.forget(l); close(l.done) }
	if !n.remember(l) {
		return nil, dialError(address, n.host.errClosed())
	}
	serve(n.watched(l), accepted)
	return &clientConn{dialled, n.host}, nil
}

// dialHTTP refuses: the host is reached as https.
func (n *network) dialHTTP(_ context.Context, _, address string) (net.Conn, error) {
	return nil, n.host.refuse("http", address)
}

// clientConn is the client's end of a connection. It sends nothing to a host
// that is closed: net/http then dials anew, and is refused there. Close may be
// called from outside the bubble of the client, so it cannot do more than that.
type clientConn struct {
	*conn
	host *Host
}

// Now is the clock that clients with a cool-down look for in a connection.
func (c *clientConn) Now() time.Time { return c.host.Now() }

func (c *clientConn) Write(p []byte) (int, error) {
	if c.host.closed.Load() {
		return 0, c.wrap("write", c.host.errClosed())
	}
	return c.conn.Write(p)
}

// watched is the host's handler, which shows on the link what is under way.
func (n *network) watched(l *link) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := n.host.Describe(r)
		l.call.Store(&name)
		defer l.call.Store(nil)
		n.host.Handler.ServeHTTP(w, r)
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
			n.tb.Logf("%s: the cleanup of a client waits for calls under way that do not return: %s", n.host.Name, calling(open))
		}
		<-l.done
	}
}

// calling names the calls that are under way.
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

// hanging is a network as the Host knows it: without its channels, which
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
