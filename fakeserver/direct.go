package fakeserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Direct returns a RoundTripper that calls the fake on the caller's goroutine,
// without connection or goroutine: several times as fast as HTTPClient, and
// with nothing to clean up. What the fake sees and what the caller gets are
// shaped as net/http shapes them. A call whose context has ended never yields
// a response. It reaches no other host than that of BaseURL.
//
// What it does not model: connections, so no reuse, no timeouts of a Transport,
// and of the hooks of net/http/httptrace only GetConn, GotConn and
// WroteHeaders; names in Request.Header such as host or content-length in lower
// case, which net/http sends besides its own, and which are left out here; and a callback of the test that waits without end is waited
// for.
func (s *Server) Direct(opts ...ClientOption) http.RoundTripper {
	return &direct{server: s, handler: s, config: newClientConfig("Direct", opts)}
}

type direct struct {
	server  *Server
	handler http.Handler // the server, but in tests of the transport itself
	config  clientConfig
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
	w := &directWriter{header: http.Header{}}
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

// connect refuses what reaches no fake, and runs the hooks of what does.
func (d *direct) connect(req *http.Request) error {
	if req.Context().Err() != nil {
		return context.Cause(req.Context())
	}
	trace := tracing(req)
	trace.getConn()
	if err := d.server.refuse(req.URL.Scheme, req.URL.Host); err != nil {
		return err
	}
	trace.sent(d)
	return nil
}

// sentBody reads the body that the caller sends. An error of its reader is the
// caller's own: the request never got anywhere.
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

// served is the request as net/http gives it to a handler.
func (d *direct) served(req *http.Request, body *bytes.Buffer) *http.Request {
	target := req.URL.RequestURI()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		u = &url.URL{Path: req.URL.Path, RawQuery: req.URL.RawQuery}
	}
	r := (&http.Request{
		Method: req.Method, URL: u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: servedHeader(req), Body: http.NoBody, ContentLength: int64(body.Len()),
		Host: req.URL.Host, RequestURI: target, RemoteAddr: d.server.nextAddr(d.config.ip).String(),
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

// namesLength reports whether a Transport says how long a body is even where
// there is none.
func namesLength(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// call runs the handler. Where it ends the connection before any of its answer
// has left, there is no response but the error that a client then sees.
func (d *direct) call(w *directWriter, r *http.Request) error {
	func() {
		defer func() {
			if recover() != nil { // ServeHTTP has reported what is to be reported
				w.ends = closes
			}
		}()
		d.handler.ServeHTTP(w, r)
	}()
	switch {
	case w.ends == stays || w.flushed:
		return nil
	case w.ends == resets:
		return resetError()
	}
	return io.EOF
}

// directWriter takes an answer down.
type directWriter struct {
	header http.Header
	sent   http.Header // header at the time of WriteHeader
	status int
	body   bytes.Buffer

	flushed bool   // what was written has left
	ends    ending // of the connection: stays, closes or resets
	drip    int    // bytes that the reader of the body gets at a time; 0: no matter
	every   time.Duration
}

// Header implements http.ResponseWriter.
func (w *directWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *directWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.begin(status, w.header.Clone())
	}
}

// begin takes the status and the header down. A header without values is what
// keeps net/http from adding its own, and is not sent.
func (w *directWriter) begin(status int, header http.Header) {
	w.status, w.sent = status, header
	maps.DeleteFunc(w.sent, func(_ string, values []string) bool { return len(values) == 0 })
}

// take takes a whole answer of the fake down. Other handlers may go on to use
// their header and their body, and so need copies; the fake does not.
func (w *directWriter) take(a answer) {
	w.begin(a.status, a.header)
	w.body = *bytes.NewBuffer(a.body)
}

// Write implements http.ResponseWriter.
func (w *directWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush implements http.Flusher.
func (w *directWriter) Flush() {
	w.WriteHeader(http.StatusOK)
	w.flushed = true
}

func (w *directWriter) response(req *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	resp := &http.Response{
		StatusCode: w.status, Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, ContentLength: w.length(), Request: req,
		Body: w.reader(req.Context()),
	}
	if req.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
	return resp
}
