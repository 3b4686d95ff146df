package fakeserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Direct returns a RoundTripper that calls the fake on the caller's goroutine,
// without connection or goroutine: several times as fast as HTTPClient, and
// with nothing to clean up. What the fake sees and what the caller gets are
// shaped as net/http shapes them. A call whose context has ended never yields
// a response. It reaches no other host than that of BaseURL.
//
// What it does not model: connections, so no reuse, trace hooks, or timeouts of
// a Transport; and a callback of the test that waits without end is waited for.
func (s *Server) Direct(opts ...ClientOption) http.RoundTripper {
	return &direct{server: s, config: newClientConfig("Direct", opts)}
}

type direct struct {
	server *Server
	config clientConfig
}

// RoundTrip implements http.RoundTripper.
func (d *direct) RoundTrip(req *http.Request) (*http.Response, error) {
	defer closeBody(req)
	if err := d.refuse(req); err != nil {
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

// refuse is what a Transport does not even dial for.
func (d *direct) refuse(req *http.Request) error {
	switch {
	case req.URL == nil:
		return errors.New("http: nil Request.URL")
	case req.Context().Err() != nil:
		return context.Cause(req.Context())
	}
	return d.server.refuse(req.URL.Scheme, req.URL.Host)
}

// sentBody reads the body that the caller sends. An error of its reader is the
// caller's own: the request never got anywhere.
func sentBody(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	if err == nil && req.ContentLength > 0 && req.ContentLength != int64(len(body)) {
		err = fmt.Errorf("http: ContentLength=%d with Body length %d", req.ContentLength, len(body))
	}
	return body, err
}

// served is the request as net/http gives it to a handler.
func (d *direct) served(req *http.Request, body []byte) *http.Request {
	target := req.URL.RequestURI()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		u = &url.URL{Path: req.URL.Path, RawQuery: req.URL.RawQuery}
	}
	r := (&http.Request{
		Method: req.Method, URL: u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: servedHeader(req, len(body)), Body: http.NoBody, ContentLength: int64(len(body)),
		Host: req.URL.Host, RequestURI: target, RemoteAddr: d.server.nextAddr(d.config.ip).String(),
	}).WithContext(req.Context())
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	if req.Host != "" {
		r.Host = req.Host
	}
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return r
}

// servedHeader adds what a Transport adds.
func servedHeader(req *http.Request, length int) http.Header {
	h := req.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	if _, given := h["User-Agent"]; !given {
		h["User-Agent"] = []string{"Go-http-client/1.1"}
	}
	if h.Get("Accept-Encoding") == "" && h.Get("Range") == "" && req.Method != http.MethodHead {
		h["Accept-Encoding"] = []string{"gzip"}
	}
	if length > 0 {
		h["Content-Length"] = []string{strconv.Itoa(length)}
	}
	return h
}

// call runs the handler. One that panics answers nothing, and its client sees
// the connection end.
func (d *direct) call(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if recover() != nil { // ServeHTTP has reported what is to be reported
			err = io.EOF
		}
	}()
	d.server.ServeHTTP(w, r)
	return nil
}

// directWriter takes an answer down.
type directWriter struct {
	header http.Header
	sent   http.Header // header at the time of WriteHeader
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *directWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *directWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
	}
}

// Write implements http.ResponseWriter.
func (w *directWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

func (w *directWriter) response(req *http.Request) *http.Response {
	w.WriteHeader(http.StatusOK)
	resp := &http.Response{
		StatusCode: w.status, Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, ContentLength: int64(w.body.Len()), Request: req,
		Body: io.NopCloser(&w.body),
	}
	if req.Method == http.MethodHead {
		resp.Body = http.NoBody
	}
	return resp
}
