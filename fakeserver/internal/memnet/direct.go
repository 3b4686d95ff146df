package memnet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
)

// Direct returns a RoundTripper that calls the handler from ip, on the
// caller's goroutine and without a connection. What the handler sees and what
// the caller gets are shaped as net/http shapes them. It reaches no other host.
func (h *Host) Direct(ip netip.Addr) http.RoundTripper { return &direct{h, ip} }

type direct struct {
	host *Host
	ip   netip.Addr
}

// RoundTrip implements http.RoundTripper.
func (d *direct) RoundTrip(req *http.Request) (*http.Response, error) {
	defer closeBody(req)
	if err := checkSent(req); err != nil {
		return nil, err
	}
	if err := d.connect(req); err != nil {
		return nil, err
	}
	body, err := sentBody(req)
	if err != nil {
		return nil, err
	}
	w := &directWriter{host: d.host, header: http.Header{}}
	err = d.call(w, d.served(req, body))
	if ctxErr := context.Cause(req.Context()); ctxErr != nil {
		return nil, ctxErr
	}
	if err != nil {
		return nil, err
	}
	return w.response(req), nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// connect refuses other addresses, and runs the hooks of a request that is sent:
// from them a client learns whether one that failed was.
func (d *direct) connect(req *http.Request) error {
	if req.Context().Err() != nil {
		return context.Cause(req.Context())
	}
	trace, address := httptrace.ContextClientTrace(req.Context()), dialledAddr(req.URL)
	if trace == nil {
		trace = &noTrace
	}
	if trace.GetConn != nil {
		trace.GetConn(address)
	}
	if err := d.host.refuse(req.URL.Scheme, address); err != nil {
		return err
	}
	if err := d.host.refusal(req, d.ip); err != nil {
		return err
	}
	if trace.GotConn != nil {
		client := net.TCPAddrFromAddrPort(d.host.nextAddr(d.ip))
		trace.GotConn(httptrace.GotConnInfo{Conn: noConn{client}})
	}
	if trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	return nil
}

var noTrace httptrace.ClientTrace

// sentBody reads the body that the caller sends. An error of its reader is
// returned to the caller, and nothing was sent.
func sentBody(req *http.Request) (*bytes.Buffer, error) {
	body := new(bytes.Buffer)
	if !hasBody(req) {
		return body, nil
	}
	_, err := io.Copy(body, req.Body) // most bodies then write themselves, in one piece
	if err == nil && req.ContentLength > 0 && req.ContentLength != int64(body.Len()) {
		err = fmt.Errorf("http: ContentLength=%d with Body length %d", req.ContentLength, body.Len())
	}
	return body, err
}

// served is the request in the shape that net/http gives a handler.
func (d *direct) served(req *http.Request, body *bytes.Buffer) *http.Request {
	target := req.URL.RequestURI()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		u = &url.URL{Path: req.URL.Path, RawQuery: req.URL.RawQuery}
	}
	r := (&http.Request{
		Method: req.Method, URL: u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: servedHeader(req), Body: http.NoBody, ContentLength: int64(body.Len()),
		Host: req.URL.Host, RequestURI: target, RemoteAddr: d.host.nextAddr(d.ip).String(),
	}).WithContext(req.Context())
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	if req.Host != "" {
		r.Host = req.Host
	}
	if body.Len() > 0 {
		r.Body = io.NopCloser(body)
	}
	if hasBody(req) && req.ContentLength <= 0 && (body.Len() > 0 || namesLength(req.Method)) {
		r.ContentLength, r.TransferEncoding = -1, []string{"chunked"} // what a Transport does with an unknown length
	}
	return r
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// namesLength reports whether a Transport sends Content-Length: 0 for a method
// without a body.
func namesLength(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// call runs the handler. If the handler ends the connection before any of its
// answer has left, the caller gets an error and no response.
func (d *direct) call(w *directWriter, r *http.Request) error {
	func() {
		defer func() {
			if recover() != nil { // the handler reports its own panics
				w.ends = Closes
			}
		}()
		d.host.Handler.ServeHTTP(w, r)
	}()
	switch {
	case w.ends == Stays || w.flushed:
		return nil
	case w.ends == Resets:
		return d.host.resetError()
	}
	return io.EOF
}

// dialledAddr is the host and port that a Transport would dial.
func dialledAddr(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
