package exchange

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"time"
)

// Bounds on what is read of an answer, packed and unpacked. The documented bodies
// take a few kilobytes.
const (
	maxSuccessBody = 1 << 20
	maxErrorBody   = 64 << 10
	// bodyWait is how long is waited for what the answer does not need: the rest of
	// an error's body, whose status is known, and the end of a body after its
	// announced length.
	bodyWait = 5 * time.Second
)

var errTooLarge = errors.New("the body is larger than any documented one")

// read takes the body in. stop ends the attempt. To close the body instead would
// be a race where another goroutine unpacks it, and the reading would go on.
func (a *Answer) read(resp *http.Response, stop func()) {
	defer resp.Body.Close()
	switch {
	case a.Status >= 200 && a.Status <= 299:
		a.Body, a.Err = readBody(resp, maxSuccessBody, stop)
	case a.Status >= 200:
		stalled := time.AfterFunc(bodyWait, stop)
		defer stalled.Stop()
		// Part of an error's body is enough: the status is known.
		a.Body, _ = readBody(resp, maxErrorBody, stop)
	default: // a protocol switch: what follows is not a body, and may never end
	}
}

// readBody reads a body that may have at most limit bytes, and skips the byte order
// mark that some gateways put before JSON (RFC 8259, 8.1). With an error it returns
// what it has read.
func readBody(resp *http.Response, limit int, stop func()) ([]byte, error) {
	raw := &io.LimitedReader{R: resp.Body, N: int64(limit) + 1}
	body, err := unpack(resp, raw, limit, stop)
	if raw.N == 0 || len(body) > limit {
		body, err = body[:min(len(body), limit)], errTooLarge
	}
	return bytes.TrimPrefix(body, []byte("\ufeff")), err
}

// unpack reads a body from raw. Requests ask for none in gzip, which would cost
// more than it saves; some gateways send it all the same.
func unpack(resp *http.Response, raw io.Reader, limit int, stop func()) ([]byte, error) {
	if resp.Header.Get("Content-Encoding") != "gzip" || resp.Uncompressed {
		return readWhole(raw, resp.ContentLength, limit, stop)
	}
	unpacked, err := gzip.NewReader(raw)
	if err != nil {
		return nil, err
	}
	return readWhole(io.LimitReader(unpacked, int64(limit)+1), -1, limit, stop)
}

// readWhole reads to the end: over HTTP/2, a body that is closed before it costs
// the service a RST_STREAM. length is what was announced, or -1. It is believed
// where the end does not come, but not where more comes: a transport that has
// unpacked the body may have left it as it was.
func readWhole(r io.Reader, length int64, limit int, stop func()) ([]byte, error) {
	size := int64(512)
	if length > 0 && length <= int64(limit) {
		size = length + 1
	}
	body := make([]byte, 0, size)
	var late *time.Timer
	defer func() {
		if late != nil {
			late.Stop()
		}
	}()
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case err == io.EOF, err != nil && int64(len(body)) == length:
			return body, nil
		case err != nil:
			return body, err
		case int64(len(body)) == length && late == nil:
			late = time.AfterFunc(bodyWait, stop)
		case len(body) == cap(body):
			body = append(body, 0)[:len(body)]
		}
	}
}
