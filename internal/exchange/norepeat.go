package exchange

import "net/http"

// This file keeps net/http from sending a request a second time, as it would after some
// failures. It cannot repeat a request with a body, because build sets no GetBody. For any
// other it needs a connection first, so the hooks notice the repeat before it is sent.

// checkRepeat notes whether the transport is about to send the request again: it looks for
// a connection although the request was written and is not answered. After an answer, the
// user's transport may send the request again, for example with a credential that the
// answer asked for. getConn and gotConn both check: getConn runs before a dial, but
// net/http skips it for an HTTP/2 connection that it dialed for another request.
func (f *facts) checkRepeat() { f.repeat = f.repeat || f.headers > f.answers }

// noteInterim sets answers back to 0: the first byte belonged to an interim answer, after
// which net/http may still repeat the request.
func (f *facts) noteInterim() { f.answers, f.interim = 0, f.interim+1 }

// plainIsHTTP1 reports that a connection without TLS is certainly HTTP/1.1. Otherwise it may
// be HTTP/2, and shared with other requests. Only net/http's own transport shows whether it
// speaks HTTP/2 without TLS. transport is nil if it is of another type.
func plainIsHTTP1(transport *http.Transport) bool {
	return transport != nil && (transport.Protocols == nil || !transport.Protocols.UnencryptedHTTP2())
}
