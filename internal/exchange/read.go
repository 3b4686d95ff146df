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
// what it has read. Requests ask for no gzip, which would cost more than it saves;
// some gateways send it all the same.
func readBody(resp *http.Response, limit int, stop func()) (body []byte, err error) {
	switch {
	case resp.Header.Get("Content-Encoding") == "gzip" && !resp.Uncompressed:
		body, err = unpack(resp.Body, limit)
	case resp.ProtoMajor == 1: // its end is the announced one
		body, err = readWhole(resp.Body, resp.ContentLength, limit, nil)
	default:
		body, err = readWhole(resp.Body, resp.ContentLength, limit, stop)
	}
	if len(body) > limit {
		body, err = body[:limit], errTooLarge
	}
	return bytes.TrimPrefix(body, []byte("\ufeff")), err
}

// unpack bounds what it reads as well: what is packed can be endless and empty.
func unpack(body io.Reader, limit int) ([]byte, error) {
	packed := &io.LimitedReader{R: body, N: int64(limit) + 1}
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	whole, err := readWhole(unpacked, -1, limit, nil)
	if packed.N == 0 {
		err = errTooLarge
	}
	return whole, err
}

// readWhole reads to the end, or beyond the limit: over HTTP/2, a body that is
// closed before its end costs the service a RST_STREAM. length is what was
// announced, or -1. It is believed where the end does not come, but not where more
// comes: a transport that has unpacked the body may have left it as it was. stop ends
// the wait for an end that is late; nil: it comes with the last byte.
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
		case err != nil, len(body) > limit:
			return body, err
		case int64(len(body)) == length && late == nil && stop != nil:
			late = time.AfterFunc(bodyWait, stop)
		case len(body) == cap(body):
			body = append(body, 0)[:len(body)]
		}
	}
}
