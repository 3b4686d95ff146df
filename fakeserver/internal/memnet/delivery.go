package memnet

import (
	"context"
	"maps"
	"net"
	"net/http"
	"time"
)

// Response is a whole answer. Nobody changes its parts once it is sent.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Ending is what happens to the connection after the part of a response that
// was sent.
type Ending int

// The endings.
const (
	Stays  Ending = iota // the connection stays, and all was sent
	Closes               // the client reads io.EOF, too early
	Resets               // the client reads ECONNRESET
	Hangs                // the client waits
	Leaves               // the whole response is sent, and the connection takes no other request
)

// Nothing of a response is sent, not even the header.
const Nothing = -1

// Delivery describes how a response leaves. With the zero value it arrives
// whole.
type Delivery struct {
	Ends  Ending
	Sent  int           // bytes of the body, unless the connection stays; or Nothing
	Drip  int           // bytes sent at a time; 0: all
	Every time.Duration // between two drips
}

// Progress is called with the bytes of a body that have left or are about to,
// and once with ended, when no more will leave. It is not called for a response
// that leaves at once, whole or as far as its Delivery says.
type Progress func(sent int, ended bool)

// Write sends the part of the response that the delivery leaves. If the
// connection ends too early, or the client leaves, it panics with
// http.ErrAbortHandler.
func (d Delivery) Write(w http.ResponseWriter, req *http.Request, r Response, progress Progress) {
	var whole bool
	if r.Body, whole = d.Part(r.Body); d.Ends == Leaves {
		w.Header().Set("Connection", "close") // over HTTP/2 net/http makes it a GOAWAY
	}
	if d.Sent != Nothing {
		d.send(req.Context(), w, r, progress)
	}
	switch {
	case req.ProtoMajor == 2 && (whole || d.Ends == Closes && d.Sent != Nothing):
		// The stream ends, and the client knows from the length that something is
		// missing.
	case d.Ends == Closes:
		panic(http.ErrAbortHandler)
	case d.Ends == Resets:
		reset(w)
	case d.Ends == Hangs:
		<-req.Context().Done()
		progress(max(0, d.Sent), true)
		panic(http.ErrAbortHandler)
	}
}

// Part is the part of a body that leaves, and whether that is the whole.
func (d Delivery) Part(body []byte) (part []byte, whole bool) {
	if d.Ends == Stays || d.Ends == Leaves || d.Sent >= len(body) {
		return body, true
	}
	return body[:max(0, d.Sent)], false
}

// send sends the response, in drips until the client leaves, and flushes it if the
// connection then ends.
func (d Delivery) send(ctx context.Context, w http.ResponseWriter, r Response, progress Progress) {
	maps.Copy(w.Header(), r.Header)
	w.WriteHeader(r.Status)
	part := len(r.Body)
	if direct, is := w.(*directWriter); is && d.Drip > 0 { // the reader of the body waits
		direct.drip, direct.progress = d, progress
	} else if d.Drip > 0 {
		part = min(d.Drip, part)
		progress(part, part == len(r.Body)) // before it leaves, so that nobody has it before it is recorded
	}
	sent, _ := w.Write(r.Body[:part])
	if d.Drip == 0 && sent < part {
		progress(sent, true)
	}
	for rest := r.Body[part:]; len(rest) > 0; rest = rest[part:] {
		_ = http.NewResponseController(w).Flush() // a part that cannot be flushed leaves with a later one
		Pause(ctx, d.Every)
		if ctx.Err() != nil {
			progress(sent, true)
			panic(http.ErrAbortHandler)
		}
		part = min(d.Drip, len(rest))
		progress(sent+part, part == len(rest))
		n, _ := w.Write(rest[:part])
		sent += n
	}
	if d.Ends != Stays {
		_ = http.NewResponseController(w).Flush()
	}
}

// reset aborts the connection below a response. Over HTTP/2, where calls share
// a connection, it resets the stream; net/http chooses the code INTERNAL_ERROR.
func reset(w http.ResponseWriter) {
	if direct, is := w.(*directWriter); is {
		direct.ends = Resets
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	// Below TLS, whose Close would say goodbye.
	if secure, is := conn.(interface{ NetConn() net.Conn }); is {
		conn = secure.NetConn()
	}
	if lingering, is := conn.(interface{ SetLinger(int) error }); is {
		_ = lingering.SetLinger(0)
	}
	_ = conn.Close()
}

// Pause waits for d, or until ctx ends. It makes its timer in the bubble of the
// call.
func Pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
