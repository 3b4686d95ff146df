package agentmessaging_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// What a run leaves behind goes with it: a fifth of its time went into collecting it.
func init() { debug.SetGCPercent(400) }

// certificate is made out to example.com. Only who has it in
// roots trusts it.
var certificate = sync.OnceValue(func() tls.Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) // httptest's RSA key takes long to sign
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0), // also in bubbles, where it is 2000
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: must(x509.ParseCertificate(der))}
})

var roots = sync.OnceValue(func() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(certificate().Leaf)
	return pool
})

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

// http2Peer is the service's end of an HTTP/2 connection, frame by frame (RFC
// 9113), since net/http's own server never misbehaves.
type http2Peer struct {
	peer
	conn    *tls.Conn
	headers chan uint32 // streams whose request has begun; closed when the client has gone
	whole   chan uint32 // streams whose request has come whole
	stream  uint32      // of the request that was read last
}

// The frames that are written or looked at.
const (
	frameData, frameHeaders, frameReset, frameSettings, frameGoAway, frameContinuation = 0, 1, 3, 4, 7, 9

	flagEndStream, flagEndHeaders = 1, 4

	noError, protocolError, internalError, refusedStream, cancelled = 0, 1, 2, 7, 8

	settingWindow = 4
)

// act is what the service does next on a connection; after an error, nothing.
type act func(*http2Peer) error

// overHTTP2 shakes hands and acts.
func overHTTP2(acts ...act) func(peer) error { return overHTTP2With(nil, acts...) }

// overHTTP2With shakes hands, exchanges settings and acts.
func overHTTP2With(settings []byte, acts ...act) func(peer) error {
	return func(p peer) error {
		h := &http2Peer{peer: p, headers: make(chan uint32, 100), whole: make(chan uint32, 100)}
		h.conn = tls.Server(p.Conn, &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"h2"}})
		if _, err := io.CopyN(io.Discard, h.conn, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return err
		}
		go h.receive() // apart, since both ends of a pipe may want to write
		if err := h.write(frameSettings, 0, 0, settings); err != nil {
			return err
		}
		return script(acts...)(h)
	}
}

func script(acts ...act) act {
	return func(h *http2Peer) error {
		for _, do := range acts {
			if err := do(h); err != nil {
				return err
			}
		}
		return nil
	}
}

// forever acts until the client goes.
func forever(acts ...act) act {
	return func(h *http2Peer) error {
		for {
			if err := script(acts...)(h); err != nil {
				return err
			}
		}
	}
}

// setting is an entry of a SETTINGS frame.
func setting(id uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, id), value)
}

func (h *http2Peer) write(kind, flags byte, stream uint32, payload []byte) error {
	frame := append([]byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags},
		binary.BigEndian.AppendUint32(nil, stream)...)
	_, err := h.conn.Write(append(frame, payload...))
	return err
}

// receive sorts what the client sends. Settings stay unacknowledged, which net/http
// does not mind: on a pipe both ends would wait for each other.
func (h *http2Peer) receive() {
	defer close(h.headers)
	defer close(h.whole)
	reader, header := bufio.NewReader(h.conn), make([]byte, 9)
	for {
		if _, err := io.ReadFull(reader, header); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, reader, int64(header[0])<<16|int64(header[1])<<8|int64(header[2])); err != nil {
			return
		}
		kind, flags, stream := header[3], header[4], binary.BigEndian.Uint32(header[5:])
		if kind == frameHeaders {
			h.headers <- stream
		}
		if kind <= frameHeaders && flags&flagEndStream != 0 {
			h.whole <- stream
		}
	}
}

// header reads until a request's header has come.
func header(h *http2Peer) error {
	stream, ok := <-h.headers
	if !ok {
		return io.EOF
	}
	h.requests.Add(1)
	h.stream = stream
	return nil
}

// request reads until a request has come whole.
func request(h *http2Peer) error {
	if err := header(h); err != nil {
		return err
	}
	if _, ok := <-h.whole; !ok {
		return io.EOF
	}
	return nil
}

// stay keeps the connection until the client goes.
func stay(h *http2Peer) error {
	for range h.headers {
	}
	return io.EOF
}

func closed(h *http2Peer) error { return h.conn.Close() }

func reset(code uint32) act {
	return func(h *http2Peer) error {
		return h.write(frameReset, 0, h.stream, binary.BigEndian.AppendUint32(nil, code))
	}
}

// goAway names the request's stream as the last one that is processed;
// goAwayBelow names the one before it.
func goAway(h *http2Peer) error { return h.goAway(h.stream, noError) }

func goAwayBelow(code uint32) act {
	return func(h *http2Peer) error { return h.goAway(max(h.stream, 2)-2, code) }
}

func (h *http2Peer) goAway(last, code uint32) error {
	return h.write(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code))
}

// status answers with a header of a status and pairs of a name and a value.
func status(code int, pairs ...string) act {
	return func(h *http2Peer) error {
		return h.write(frameHeaders, flagEndHeaders, h.stream, fields(code, pairs...))
	}
}

// fields are a status and pairs as HPACK literals.
func fields(code int, pairs ...string) []byte {
	block := append([]byte{0x08, 3}, fmt.Sprintf("%03d", code)...) // 8 is :status in the static table
	for i, text := range pairs {
		if i%2 == 0 {
			block = append(block, 0)
		}
		block = append(append(block, byte(len(text))), text...)
	}
	return block
}

func body(text string, flags byte) act {
	return func(h *http2Peer) error { return h.write(frameData, flags, h.stream, []byte(text)) }
}

// reply is a whole answer.
func reply(code int, text string) act { return script(status(code), body(text, flagEndStream)) }
