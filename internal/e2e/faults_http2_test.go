package e2e_test

import (
	"strings"
	"time"
)

var http2Faults = []fault{
	{name: "closed after the handshake", serve: overHTTP2(), race: true},
	{name: "stream refused before the body", serve: overHTTP2(header, reset(refusedStream), stay)},
	{name: "stream refused (REFUSED_STREAM)", serve: overHTTP2(request, reset(refusedStream), stay)},
	{name: "stream reset with PROTOCOL_ERROR", serve: overHTTP2(request, reset(protocolError), stay)},
	{name: "stream reset with INTERNAL_ERROR", serve: overHTTP2(request, reset(internalError), stay)},
	{name: "stream reset with CANCEL", serve: overHTTP2(request, reset(cancelled), stay)},
	{name: "stream reset without an error", serve: overHTTP2(request, reset(noError), stay)},
	{name: "GOAWAY below the stream", serve: overHTTP2(request, goAwayBelow(noError), stay), unprocessed: true},
	{name: "GOAWAY below the stream, with an error", serve: overHTTP2(request, goAwayBelow(internalError), stay), unprocessed: true},
	{name: "GOAWAY at the stream, then closed", serve: overHTTP2(request, goAway, closed)},
	{name: "GOAWAY at the stream, then the answer", serve: overHTTP2(request, goAway, answer(200, okBody), stay)},
	{name: "closed after the request's header", serve: overHTTP2(header)},
	{name: "closed after the request", serve: overHTTP2(request)},
	{name: "reset after the answer's header", serve: overHTTP2(request, status(200), reset(internalError), stay)},
	{name: "refused after the answer's header", serve: overHTTP2(request, status(200), reset(refusedStream), stay)},
	{name: "reset inside the answer's body", serve: overHTTP2(request, status(200), body(okBody[:20], 0), reset(internalError), stay)},
	{name: "ended inside the answer's body", serve: overHTTP2(request, answer(200, okBody[:20]), stay)},
	{name: "103, then refused", serve: overHTTP2(request, status(103), reset(refusedStream), stay)},
	{name: "103, then reset with PROTOCOL_ERROR", serve: overHTTP2(request, status(103), reset(protocolError), stay)},
	{name: "103 before the answer", serve: overHTTP2(request, status(103), answer(200, okBody), stay)},
	{name: "103 without end", serve: overHTTP2(request, forever(status(103)))},
	{name: "header without end", serve: overHTTP2(request, unended(200), forever(continuation))},
	{name: "status 000", serve: overHTTP2(request, answer(0, okBody), stay)},
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
