package agentmessaging_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// The fault matrix, continued: what only HTTP/2 has.

// afterRequest reads a whole request, does what goes wrong, and stays.
func afterRequest(wrong func(*http2Peer) error) func(peer) error {
	return overHTTP2(func(h *http2Peer) error {
		if err := h.readRequest(); err != nil {
			return err
		}
		if err := wrong(h); err != nil {
			return err
		}
		return h.drain()
	})
}

func resetWith(code uint32) func(peer) error {
	return afterRequest(func(h *http2Peer) error { return h.resetStream(code) })
}

func goAwayWith(last, code uint32) func(peer) error {
	return afterRequest(func(h *http2Peer) error { return h.goAway(last, code) })
}

var http2Faults = []connectionFault{
	{name: "closed after the handshake", serve: overHTTP2(func(*http2Peer) error { return nil })},
	{name: "stream refused before the body", serve: overHTTP2(func(h *http2Peer) error {
		if err := h.readHeader(); err != nil {
			return err
		}
		_ = h.resetStream(refusedStream)
		return h.drain()
	})},
	{name: "stream refused (REFUSED_STREAM)", serve: resetWith(refusedStream)},
	{name: "stream reset with PROTOCOL_ERROR", serve: resetWith(protocolError)},
	{name: "stream reset with INTERNAL_ERROR", serve: resetWith(internalError)},
	{name: "stream reset with CANCEL", serve: resetWith(cancelled)},
	{name: "stream reset without an error", serve: resetWith(noError)},
	{name: "GOAWAY below the stream", serve: goAwayWith(0, noError)},
	{name: "GOAWAY below the stream, with an error", serve: goAwayWith(0, internalError)},
	{name: "GOAWAY at the stream, then closed", serve: afterRequest(func(h *http2Peer) error {
		_ = h.goAway(h.stream, noError)
		return h.conn.Close()
	})},
	{name: "GOAWAY at the stream, then the answer", serve: afterRequest(func(h *http2Peer) error {
		_ = h.goAway(h.stream, noError)
		return h.answer(200, okBody)
	})},
	{name: "closed after the request's header", serve: overHTTP2((*http2Peer).readHeader)},
	{name: "closed after the request", serve: overHTTP2((*http2Peer).readRequest)},
	{name: "reset after the answer's header", serve: afterRequest(func(h *http2Peer) error {
		_ = h.answerHeader(200)
		return h.resetStream(internalError)
	})},
	{name: "refused after the answer's header", serve: afterRequest(func(h *http2Peer) error {
		_ = h.answerHeader(200)
		return h.resetStream(refusedStream)
	})},
	{name: "reset inside the answer's body", serve: afterRequest(func(h *http2Peer) error {
		_ = h.answerHeader(200)
		_ = h.answerBody(okBody[:20], 0)
		return h.resetStream(internalError)
	})},
	{name: "ended inside the answer's body", serve: afterRequest(func(h *http2Peer) error { return h.answer(200, okBody[:20]) })},
	{name: "103, then refused", serve: afterRequest(func(h *http2Peer) error {
		_ = h.answerHeader(103)
		return h.resetStream(refusedStream)
	})},
	{name: "103, then reset with PROTOCOL_ERROR", serve: afterRequest(func(h *http2Peer) error {
		_ = h.answerHeader(103)
		return h.resetStream(protocolError)
	})},
	{name: "103 before the answer", serve: afterRequest(func(h *http2Peer) error {
		_ = h.answerHeader(103)
		return h.answer(200, okBody)
	})},
	{name: "103 without end", serve: afterRequest(func(h *http2Peer) error {
		for {
			if err := h.answerHeader(103); err != nil {
				return err
			}
		}
	})},
	{name: "header without end", serve: afterRequest(func(h *http2Peer) error {
		_ = h.write(frameHeaders, 0, h.stream, []byte{0x08, 3, '2', '0', '0'})
		field := append([]byte{0, 1, 'x', 126}, strings.Repeat("x", 126)...)
		for {
			if err := h.write(frameContinuation, 0, h.stream, field); err != nil {
				return err
			}
		}
	})},
	{name: "status 000", serve: afterRequest(func(h *http2Peer) error { return h.answer(0, okBody) })},
	{name: "no answer until the deadline", serve: afterRequest(func(*http2Peer) error { return nil }), deadline: 10 * time.Second},
	{name: "no body until the deadline", serve: afterRequest(func(h *http2Peer) error { return h.answerHeader(200) }), deadline: 10 * time.Second},
	{name: "packed error without body", serve: afterRequest(func(h *http2Peer) error {
		return h.answerHeader(404, "content-encoding", "gzip")
	})},
}

// turnedAway are the faults by which HTTP/2 says that nothing was processed, so
// that a POST is sent again.
func turnedAway(name string) bool {
	return strings.HasPrefix(name, "stream refused") || strings.HasPrefix(name, "GOAWAY below")
}

// TestHTTP2FaultMatrix runs every endpoint against the faults of HTTP/2, in
// virtual time, and one of each column over TCP and through a proxy.
func TestHTTP2FaultMatrix(t *testing.T) {
	page := newPage("How an attempt goes wrong", "GET, PUT, DELETE", "POST")
	for _, fault := range http2Faults {
		fault.tls, fault.http2 = true, true
		var row [2]string
		for _, call := range nineCalls {
			column := columnOf(call.method)
			c := fault.overHTTP2(t, call.do, row[column] == "")
			if !turnedAway(fault.name) {
				assert.LessOrEqual(t, c.requests*column, 1, "%s, %s: a POST is never doubled", call.name, fault.name)
			}
			if fault.name == "closed after the handshake" && column == 1 {
				assert.Zero(t, c.requests)
				row[column] = eitherWay
				continue
			}
			if row[column] == "" {
				row[column] = c.String()
			}
			assert.Equal(t, row[column], c.String(), "%s, %s: the endpoints differ", call.name, fault.name)
		}
		page.row(fault.name, row[0], row[1])
	}
	page.hold(t, "http2")
}

func (f connectionFault) overHTTP2(t *testing.T, do func(context.Context, *agentmessaging.Client) error, everywhere bool) (virtual cell) {
	synctest.Test(t, func(t *testing.T) { virtual = f.run(t, do, agentmessaging.RetryPolicy{}, overPipe) })
	if !everywhere || f.name == "closed after the handshake" {
		return virtual
	}
	var proxied cell
	f.proxy = true
	synctest.Test(t, func(t *testing.T) { proxied = f.run(t, do, agentmessaging.RetryPolicy{}, overPipe) })
	assert.Equal(t, virtual, proxied, "%s: through a proxy", f.name)
	if f.deadline == 0 && virtual.elapsed < 5*time.Second {
		f.proxy = false
		real := f.run(t, do, agentmessaging.RetryPolicy{MinWait: time.Microsecond}, overTCP(t))
		real.elapsed = virtual.elapsed
		assert.Equal(t, virtual, real, "%s: over TCP", f.name)
	}
	return virtual
}
