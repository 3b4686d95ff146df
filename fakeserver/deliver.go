package fakeserver

import (
	"context"
	"net"
	"net/http"
	"time"
)

// ending is what follows the part of an answer that was sent.
type ending int

const (
	stays  ending = iota // the connection does, and all was sent
	closes               // the client reads io.EOF, too early
	resets               // the client reads ECONNRESET
	hangs                // the client waits
)

// nothing of an answer is sent, not even the header.
const nothing = -1

// delivery is what becomes of an answer on its way to the client. The zero
// value is an answer that arrives.
type delivery struct {
	ends  ending
	sent  int // bytes of the body, unless the connection stays; or nothing
	drip  int // bytes sent at a time; 0: all
	every time.Duration
}

// deliver sends the answer that was decided, or what a fault makes of it.
func (s *Server) deliver(w http.ResponseWriter, r *http.Request, req *request, a answer) {
	f := req.fault
	if f == nil {
		a.write(w)
		return
	}
	if f.canned != nil {
		a = f.canned.answer(s, req)
	}
	f.delivery.write(r.Context(), w, a)
}

func (d delivery) write(ctx context.Context, w http.ResponseWriter, a answer) {
	if d.ends != stays {
		a.body = a.body[:max(0, min(d.sent, len(a.body)))]
	}
	if d.sent != nothing {
		d.send(ctx, w, a)
	}
	switch d.ends {
	case closes:
		panic(http.ErrAbortHandler)
	case resets:
		reset(w)
	case hangs:
		<-ctx.Done()
		panic(http.ErrAbortHandler)
	}
}

// send sends what the client shall have, and leaves nothing in a buffer where
// the connection then ends.
func (d delivery) send(ctx context.Context, w http.ResponseWriter, a answer) {
	direct, isDirect := w.(*directWriter)
	switch {
	case d.drip > 0 && isDirect: // its reader does the waiting
		direct.drip, direct.every = d.drip, d.every
		a.write(w)
	case d.drip > 0:
		d.dribble(ctx, w, a)
	default:
		a.write(w)
	}
	if d.ends != stays {
		_ = http.NewResponseController(w).Flush()
	}
}

// dribble sends the body in small parts. Where the client leaves in the
// meantime, so does the answer.
func (d delivery) dribble(ctx context.Context, w http.ResponseWriter, a answer) {
	var rest []byte
	a.body, rest = d.part(a.body)
	a.write(w)
	for len(rest) > 0 {
		_ = http.NewResponseController(w).Flush() // what cannot be flushed comes later
		pause(ctx, d.every)
		if ctx.Err() != nil {
			panic(http.ErrAbortHandler)
		}
		var part []byte
		part, rest = d.part(rest)
		_, _ = w.Write(part)
	}
}

func (d delivery) part(body []byte) (first, rest []byte) {
	n := min(d.drip, len(body))
	return body[:n], body[n:]
}

// reset aborts the connection below a response. Where there is none of its
// own, as in HTTP/2, the response is aborted.
func reset(w http.ResponseWriter) {
	if direct, is := w.(*directWriter); is {
		direct.ends = resets
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
