package memnet

import (
	"net"
	"net/http"
	"net/http/httptrace"
	"time"
)

// hooks holds the trace of a request over Direct. From it a client learns
// whether a failed request was sent.
type hooks struct {
	trace *httptrace.ClientTrace // nil: none
	host  string
}

func tracing(req *http.Request) hooks {
	return hooks{httptrace.ContextClientTrace(req.Context()), dialledAddr(req.URL)}
}

func (h hooks) getConn() {
	if h.trace != nil && h.trace.GetConn != nil {
		h.trace.GetConn(h.host)
	}
}

func (h hooks) sent(d *direct) {
	if h.trace == nil {
		return
	}
	if h.trace.GotConn != nil {
		client := net.TCPAddrFromAddrPort(d.host.nextAddr(d.ip))
		h.trace.GotConn(httptrace.GotConnInfo{Conn: noConn{client, d.host}})
	}
	if h.trace.WroteHeaders != nil {
		h.trace.WroteHeaders()
	}
}

// noConn is the connection that a hook gets from Direct, which has none: it has
// addresses, and is closed.
type noConn struct {
	client net.Addr
	host   *Host
}

// Now is the clock that clients with a cool-down look for in a connection.
func (c noConn) Now() time.Time { return c.host.Now() }

func (noConn) Read([]byte) (int, error)         { return 0, net.ErrClosed }
func (noConn) Write([]byte) (int, error)        { return 0, net.ErrClosed }
func (noConn) Close() error                     { return nil }
func (c noConn) LocalAddr() net.Addr            { return c.client }
func (c noConn) RemoteAddr() net.Addr           { return addr(c.host.Addr) }
func (noConn) SetDeadline(time.Time) error      { return net.ErrClosed }
func (noConn) SetReadDeadline(time.Time) error  { return net.ErrClosed }
func (noConn) SetWriteDeadline(time.Time) error { return net.ErrClosed }
