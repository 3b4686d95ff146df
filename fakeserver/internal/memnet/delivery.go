package memnet

import (
	"context"
	"maps"
	"net"
	"net/http"
	"time"
)

// Transmission is an answer to a request, and the way in which it is sent. Its parts do not
// change once it is sent.
type Transmission struct {
	Response
	Delivery
	// Progress gets the number of body bytes that were sent or are about to be sent. It is
	// called while an answer drips or hangs, and if the client leaves before it has the part
	// that Delivery allows. Only in the last of these calls ended is true. An answer
	// that is sent at once needs no call.
	Progress func(sent int, ended bool)
}

// Response is a whole answer, as the service, or a test in its place, decided it.
type Response struct {
	Status int
	Header http.Header // a name without values keeps net/http from adding its own
	Body   []byte
}

// Ending says what happens to the connection after the sent part of a response. The
// client sees the same error over HTTPClient, over Direct and over a socket; over HTTP/2
// only the stream ends.
type Ending int

// The endings.
const (
	Stays    Ending = iota // the connection stays open, and the whole response was sent
	Closes                 // the client reads io.EOF, too early
	Resets                 // the client reads ECONNRESET
	Hangs                  // the client waits; nothing was sent
	GoesAway               // as after a GOAWAY: the whole response is sent, and then the connection takes no other request
)

// Nothing says that no part of a response is sent, not even the header.
const Nothing = -1

// Delivery describes how a response is sent. With the zero value it arrives whole.
type Delivery struct {
	// Ends says what happens to the connection after the sent part.
	Ends Ending
	// Sent is how many bytes of the body are sent before the connection ends, or Nothing. If
	// the connection stays, the whole body is sent.
	Sent int
	// Drip is how many bytes are sent at a time, with a pause of Every in between; 0
	// sends all at once.
	Drip  int
	Every time.Duration
}

// Part returns the part of a body that is sent, and whether that is the whole body. A
// body that is not longer than Sent is sent whole.
func (d Delivery) Part(body []byte) (part []byte, whole bool) {
	if d.Ends == Stays || d.Ends == GoesAway || d.Sent >= len(body) {
		return body, true
	}
	return body[:max(0, d.Sent)], false
}

// Write sends the answer to a request through net/http's server. If the connection ends
// too early, or the client leaves, it panics with http.ErrAbortHandler, which net/http
// treats as an abort and does not log.
func (t *Transmission) Write(w http.ResponseWriter, req *http.Request) {
	part, whole := t.Part(t.Body)
	if t.Sent != Nothing {
		t.send(req.Context(), w, part)
	}
	if whole || req.ProtoMajor == 2 && t.Ends == Closes && t.Sent != Nothing {
		return // of HTTP/2 only the stream ends: the client sees from the Content-Length that a part is missing
	}
	switch t.Ends { // no more bytes follow
	case Closes:
		panic(http.ErrAbortHandler)
	case Resets:
		reset(w)
	case Hangs:
		t.hang(req.Context())
		panic(http.ErrAbortHandler)
	}
}

// hang waits until the client leaves, and records that nothing was sent.
func (t *Transmission) hang(ctx context.Context) {
	<-ctx.Done()
	t.Progress(0, true)
}

// send sends a part of the body, if necessary in drips until the client leaves. It
// flushes the part if the connection then ends.
func (t *Transmission) send(ctx context.Context, w http.ResponseWriter, part []byte) {
	maps.Copy(w.Header(), t.Header.Clone()) // the record has the same header
	if t.Ends == GoesAway {
		w.Header().Set("Connection", "close") // over HTTP/2 net/http makes it a GOAWAY
	}
	w.WriteHeader(t.Status)
	for sent := 0; t.Drip > 0 && sent < len(part); {
		if sent > 0 {
			_ = http.NewResponseController(w).Flush() // a part that cannot be flushed is sent with a later part
			Pause(ctx, t.Every)
			if ctx.Err() != nil {
				t.Progress(sent, true)
				panic(http.ErrAbortHandler)
			}
		}
		drip := part[sent:min(sent+t.Drip, len(part))]
		t.Progress(sent+len(drip), sent+len(drip) == len(part)) // recorded before a client can have it
		_, _ = w.Write(drip)                                    // if it fails, the client has left
		sent += len(drip)
	}
	// A client that takes less than the whole part has left.
	if t.Drip == 0 {
		if sent, _ := w.Write(part); sent < len(part) {
			t.Progress(sent, true)
		}
	}
	if t.Ends != Stays {
		_ = http.NewResponseController(w).Flush()
	}
}

// reset aborts the connection of a response: with SO_LINGER 0, Close sends a RST. Over
// HTTP/2, where calls share a connection, reset resets only the stream; net/http chooses
// the code INTERNAL_ERROR.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	// Abort the connection under TLS, because the Close of a TLS connection would first send
	// an alert.
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	if lingering, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = lingering.SetLinger(0)
	}
	_ = conn.Close()
}

// Pause waits for d, or until ctx ends. It makes its timer in the bubble of the call, so
// the timer follows the bubble's clock.
func Pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
