package agentmessaging_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// http2Peer is the service's end of an HTTP/2 connection, frame by frame (RFC
// 9113), since net/http's own server never misbehaves.
type http2Peer struct {
	peer
	conn   *tls.Conn
	frames chan frame // that have come; closed at the end
	stream uint32     // of the request that was read last
	ended  bool       // it came whole
}

// The frames that are written or looked at.
const (
	frameData, frameHeaders, frameReset, frameSettings, frameGoAway, frameWindow, frameContinuation = 0, 1, 3, 4, 7, 8, 9

	flagEndStream, flagAck, flagEndHeaders = 1, 1, 4

	noError, protocolError, internalError, refusedStream, cancelled = 0, 1, 2, 7, 8

	settingStreams, settingWindow = 3, 4
)

// overHTTP2 shakes hands and exchanges settings before serve.
func overHTTP2(serve func(*http2Peer) error, settings ...byte) func(peer) error {
	return func(p peer) error {
		h := &http2Peer{peer: p, frames: make(chan frame, 1000), conn: tls.Server(p.Conn, &tls.Config{Certificates: []tls.Certificate{untrusted()}, NextProtos: []string{"h2"}})}
		if _, err := io.CopyN(io.Discard, h.conn, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return err
		}
		go h.receive() // apart, since both ends of a pipe may want to write
		if err := h.write(frameSettings, 0, 0, settings); err != nil {
			return err
		}
		return serve(h)
	}
}

// setting is an entry of a SETTINGS frame.
func setting(id uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, id), value)
}

// trusted are the roots of httptest's certificate, made out to example.com.
var trusted = sync.OnceValue(func() *x509.CertPool {
	pool := x509.NewCertPool()
	certificate, err := x509.ParseCertificate(untrusted().Certificate[0])
	if err != nil {
		panic(err)
	}
	pool.AddCert(certificate)
	return pool
})

func (h *http2Peer) write(kind, flags byte, stream uint32, payload []byte) error {
	frame := append([]byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags},
		binary.BigEndian.AppendUint32(nil, stream)...)
	_, err := h.conn.Write(append(frame, payload...))
	return err
}

// frame is what is looked at of one.
type frame struct {
	kind, flags byte
	stream      uint32
}

func (f frame) endsStream() bool { return f.flags&flagEndStream != 0 }

func (h *http2Peer) receive() {
	defer close(h.frames)
	reader, header := bufio.NewReader(h.conn), make([]byte, 9)
	for {
		if _, err := io.ReadFull(reader, header); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, reader, int64(header[0])<<16|int64(header[1])<<8|int64(header[2])); err != nil {
			return
		}
		h.frames <- frame{header[3], header[4], binary.BigEndian.Uint32(header[5:])}
	}
}

// next returns one frame, and acknowledges settings.
func (h *http2Peer) next() (frame, error) {
	f, ok := <-h.frames
	switch {
	case !ok:
		return f, io.EOF
	case f.kind == frameSettings && f.flags&flagAck == 0:
		return f, h.write(frameSettings, flagAck, 0, nil)
	}
	return f, nil
}

// readHeader reads until a request's header has come whole.
func (h *http2Peer) readHeader() error {
	for {
		f, err := h.next()
		if err != nil {
			return err
		}
		if f.kind == frameHeaders {
			h.requests.Add(1)
			h.stream, h.ended = f.stream, f.endsStream()
			return nil
		}
	}
}

// readRequest reads until a request has come whole.
func (h *http2Peer) readRequest() error {
	if err := h.readHeader(); err != nil {
		return err
	}
	for !h.ended {
		f, err := h.next()
		if err != nil {
			return err
		}
		h.ended = f.kind == frameData && f.stream == h.stream && f.endsStream()
	}
	return nil
}

func (h *http2Peer) resetStream(code uint32) error {
	return h.write(frameReset, 0, h.stream, binary.BigEndian.AppendUint32(nil, code))
}

func (h *http2Peer) goAway(last, code uint32) error {
	return h.write(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code))
}

// answerHeader writes a status and, as HPACK literals, pairs of a name and a
// value.
func (h *http2Peer) answerHeader(status int, fields ...string) error {
	block := append([]byte{0x08, 3}, fmt.Sprint(status)...) // 8 is :status in the static table
	for i := 0; i < len(fields); i += 2 {
		block = append(append(append(block, 0, byte(len(fields[i]))), fields[i]...), byte(len(fields[i+1])))
		block = append(block, fields[i+1]...)
	}
	return h.write(frameHeaders, flagEndHeaders, h.stream, block)
}

func (h *http2Peer) answerBody(body string, flags byte) error {
	return h.write(frameData, flags, h.stream, []byte(body))
}

func (h *http2Peer) answer(status int, body string, fields ...string) error {
	if err := h.answerHeader(status, fields...); err != nil {
		return err
	}
	return h.answerBody(body, flagEndStream)
}

// drain reads until the client goes.
func (h *http2Peer) drain() error {
	for {
		if _, err := h.next(); err != nil {
			return err
		}
	}
}

// answerConnect is a proxy's part.
func answerConnect(p peer) error {
	req, err := http.ReadRequest(bufio.NewReader(p.Conn))
	if err == nil && req.Method == http.MethodConnect {
		_, err = io.WriteString(p, "HTTP/1.1 200 Connection established\r\n\r\n")
	}
	return err
}
