package agentmessaging_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

var http1Faults = []fault{
	{name: "connection refused", dial: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}},
	{name: "name not found", dial: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "service.example", IsNotFound: true}}},
	{name: "TLS handshake fails", tls: true, serve: func(p peer) error {
		_, _ = p.Read(make([]byte, 64<<10))
		_, err := io.WriteString(p, "220 mail.example ESMTP\r\n")
		return err
	}},
	{name: "certificate refused", tls: true, serve: func(p peer) error {
		return tls.Server(p.Conn, &tls.Config{Certificates: []tls.Certificate{certificate()}}).Handshake()
	}},
	{name: "reset on accept", race: true, serve: thenReset(func(peer) error { return nil })},
	{name: "reset after the request's header", serve: thenReset(func(p peer) error { _, err := p.readHeader(); return err })},
	{name: "reset after the request", serve: thenReset(peer.readRequest)},
	{name: "closed after the request", serve: peer.readRequest},
	{name: "closed inside the answer's header", serve: respond("200 OK\r\nContent-Le", "")},
	{name: "closed inside the answer's body", serve: respond("200 OK\r\n"+length, anyReply[:20])},
	{name: "reset inside the answer's body", serve: thenReset(respond("200 OK\r\n"+length, anyReply[:20]))},
	{name: "Content-Length too large", serve: respond("200 OK\r\nContent-Length: 100000", anyReply)},
	{name: "Content-Length too small", serve: respond("200 OK\r\nContent-Length: 20", anyReply)},
	{name: "Content-Length not a number", serve: respond("200 OK\r\nContent-Length: x", anyReply)},
	{name: "broken chunk", serve: respond("200 OK\r\nTransfer-Encoding: chunked", "zz\r\n"+anyReply)},
	{name: "closed between chunks", serve: respond("200 OK\r\nTransfer-Encoding: chunked", "5\r\n{\"ok\"\r\n")},
	{name: "not HTTP", serve: respond("\x00\x01", "")},
	{name: "header without end", serve: respond("200 OK\r\nX: "+strings.Repeat("x", 1<<20), "")},
	{name: "body without end", serve: endless("200 OK")},
	{name: "error body without end", serve: endless("404 Not Found")},
	{name: "300 MiB packed into 300 KB", serve: func(p peer) error {
		return respond(fmt.Sprintf("200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d", len(packed())), string(packed()))(p)
	}},
	{name: "request not taken until the deadline", serve: func(peer) error { time.Sleep(15 * time.Second); return nil }, deadline: 10 * time.Second},
	{name: "no answer until the deadline", serve: thenStall(peer.readRequest), deadline: 10 * time.Second},
	{name: "no body until the deadline", serve: thenStall(respond("200 OK\r\n"+length, anyReply[:20])), deadline: 10 * time.Second},
	{name: "error without body until the deadline", serve: thenStall(respond("404 Not Found\r\nContent-Length: 50", "{")), deadline: 10 * time.Second},
	{name: "packed error without body", serve: thenStall(respond("404 Not Found\r\nContent-Encoding: gzip\r\nContent-Length: 50", "")), deadline: 10 * time.Second},
	{name: "answer byte by byte", serve: drip},
	{name: "1xx before the answer", serve: respond(strings.Repeat("102 Processing\r\n\r\nHTTP/1.1 ", 60)+"200 OK\r\n"+length, anyReply)},
	{name: "protocol switch", serve: thenStall(respond("101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x", ""))},
	{name: "closed without Content-Length", serve: respond("200 OK\r\nConnection: close", anyReply)},
}

var length = fmt.Sprintf("Content-Length: %d", len(anyReply))

func respond(header, body string) func(peer) error {
	return func(p peer) error {
		if err := p.readRequest(); err != nil {
			return err
		}
		_, err := io.WriteString(p, "HTTP/1.1 "+header+"\r\n\r\n"+body)
		return err
	}
}

func thenReset(before func(peer) error) func(peer) error {
	return func(p peer) error {
		err := before(p)
		p.reset()
		return err
	}
}

func thenStall(before func(peer) error) func(peer) error {
	return func(p peer) error {
		if err := before(p); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, p) // until the client goes
		return err
	}
}

func endless(status string) func(peer) error {
	return func(p peer) error {
		if err := respond(status+"\r\nTransfer-Encoding: chunked", "")(p); err != nil {
			return err
		}
		chunk := []byte("10000\r\n" + strings.Repeat(" ", 0x10000) + "\r\n")
		for {
			if _, err := p.Write(chunk); err != nil {
				return err
			}
		}
	}
}

func drip(p peer) error {
	if err := p.readRequest(); err != nil {
		return err
	}
	for _, b := range []byte("HTTP/1.1 200 OK\r\n" + length + "\r\n\r\n" + anyReply) {
		if _, err := p.Write([]byte{b}); err != nil {
			return err
		}
	}
	return nil
}

// packed is an answer and 300 MiB of spaces as gzip, each MiB a member of its own.
var packed = sync.OnceValue(func() []byte {
	member := func(text []byte) []byte {
		var one bytes.Buffer
		zip := gzip.NewWriter(&one)
		zip.Write(text)
		zip.Close()
		return one.Bytes()
	}
	return append(member([]byte(anyReply)), bytes.Repeat(member(bytes.Repeat([]byte(" "), 1<<20)), 300)...)
})

var http2Faults = []fault{
	{name: "closed after the handshake", serve: overHTTP2(), race: true},
	{name: "REFUSED_STREAM before the body", serve: overHTTP2(header, reset(refusedStream), stay)},
	{name: "REFUSED_STREAM", serve: overHTTP2(request, reset(refusedStream), stay)},
	{name: "PROTOCOL_ERROR", serve: overHTTP2(request, reset(protocolError), stay)},
	{name: "INTERNAL_ERROR", serve: overHTTP2(request, reset(internalError), stay)},
	{name: "CANCEL", serve: overHTTP2(request, reset(cancelled), stay)},
	{name: "NO_ERROR", serve: overHTTP2(request, reset(noError), stay)},
	{name: "GOAWAY below the stream", serve: overHTTP2(request, goAwayBelow(noError), stay), unprocessed: true},
	{name: "GOAWAY below it with an error", serve: overHTTP2(request, goAwayBelow(internalError), stay), unprocessed: true},
	{name: "GOAWAY at the stream, then closed", serve: overHTTP2(request, goAway, closed)},
	{name: "GOAWAY at the stream, then the answer", serve: overHTTP2(request, goAway, reply(200, anyReply), stay)},
	{name: "closed after the request's header", serve: overHTTP2(header)},
	{name: "closed after the request", serve: overHTTP2(request)},
	{name: "reset after the answer's header", serve: overHTTP2(request, status(200), reset(internalError), stay)},
	{name: "REFUSED_STREAM after it", serve: overHTTP2(request, status(200), reset(refusedStream), stay)},
	{name: "reset inside the answer's body", serve: overHTTP2(request, status(200), body(anyReply[:20], 0), reset(internalError), stay)},
	{name: "ended inside the answer's body", serve: overHTTP2(request, reply(200, anyReply[:20]), stay)},
	{name: "103, then REFUSED_STREAM", serve: overHTTP2(request, status(103), reset(refusedStream), stay)},
	{name: "103, then PROTOCOL_ERROR", serve: overHTTP2(request, status(103), reset(protocolError), stay)},
	{name: "103 before the answer", serve: overHTTP2(request, status(103), reply(200, anyReply), stay)},
	{name: "103 without end", serve: overHTTP2(request, forever(status(103)))},
	{name: "header without end", serve: overHTTP2(request, unended(200), forever(continuation))},
	{name: "status 000", serve: overHTTP2(request, reply(0, anyReply), stay)},
	{name: "no window for the request's body", serve: overHTTP2With(setting(settingWindow, 0), header, stay), deadline: 10 * time.Second},
	{name: "no answer until the deadline", serve: overHTTP2(request, stay), deadline: 10 * time.Second},
	{name: "no body until the deadline", serve: overHTTP2(request, status(200), stay), deadline: 10 * time.Second},
	{name: "packed error without body", serve: overHTTP2(request, status(404, "content-encoding", "gzip"), stay)},
}

// unended is a header of which more is to come, by continuation.
func unended(code int) act {
	return func(h *http2Peer) error { return h.write(frameHeaders, 0, h.stream, fields(code)) }
}

func continuation(h *http2Peer) error {
	return h.write(frameContinuation, 0, h.stream, append([]byte{0, 1, 'x', 126}, strings.Repeat("x", 126)...))
}
