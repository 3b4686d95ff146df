package e2e_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
)

// peer is the service's end of a connection that goes wrong.
type peer struct {
	net.Conn
	requests *atomic.Int32 // whole request headers read
	reset    func()        // close it so that the client gets ECONNRESET
}

// readHeader reads a request's header, and nothing behind it if the client
// has not yet sent more.
func (p peer) readHeader() (*http.Request, error) {
	req, err := http.ReadRequest(bufio.NewReader(p.Conn))
	if err == nil {
		p.requests.Add(1)
	}
	return req, err
}

func (p peer) readRequest() error {
	req, err := p.readHeader()
	if err == nil {
		_, err = io.Copy(io.Discard, req.Body)
	}
	return err
}

// answerConnect is a proxy's part.
func (p peer) answerConnect() error {
	req, err := http.ReadRequest(bufio.NewReader(p.Conn))
	if err == nil && req.Method == http.MethodConnect {
		_, err = io.WriteString(p, "HTTP/1.1 200 Connection established\r\n\r\n")
	}
	return err
}

// overPipe connects two ends in memory.
func overPipe() (net.Conn, peer) {
	client, service := net.Pipe()
	end := &resettable{Conn: client}
	return end, peer{Conn: service, reset: func() {
		end.wasReset.Store(true)
		service.Close()
	}}
}

// resettable is a client's end of a net.Pipe that can be reset.
type resettable struct {
	net.Conn
	wasReset atomic.Bool
}

func (c *resettable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.wrap("read", err)
}

func (c *resettable) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.wrap("write", err)
}

func (c *resettable) wrap(op string, err error) error {
	if err != nil && c.wasReset.Load() {
		return &net.OpError{Op: op, Net: "pipe", Err: syscall.ECONNRESET}
	}
	return err
}

// overTCP connects two ends of a loopback connection, each pair by a listener of
// its own: no other connection can come between.
func overTCP() (net.Conn, peer) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	client := must(net.Dial("tcp", listener.Addr().String()))
	service := must(listener.Accept())
	return client, peer{Conn: service, reset: func() {
		service.(*net.TCPConn).SetLinger(0)
		service.Close()
	}}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
