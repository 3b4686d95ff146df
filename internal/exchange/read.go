package exchange

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

// Bounds on what is read of an answer, counted after decompression. The
// documented bodies take a few kilobytes.
const (
	maxSuccessBody = 1 << 20
	maxErrorBody   = 64 << 10
	// errorBodyWait is how long the rest of an error's body is waited for: its
	// status is known, and a body that stalls must not hold up the retry.
	errorBodyWait = 5 * time.Second
)

var errTooLarge = errors.New("the body is larger than any documented one")

// read takes the body in. stop ends the attempt. To close the body instead would
// be a race where another goroutine unpacks it, and the reading would go on.
func (a *Answer) read(resp *http.Response, stop func()) {
	defer resp.Body.Close()
	switch {
	case a.Status >= 200 && a.Status <= 299:
		a.Body, a.Err = readBody(resp, maxSuccessBody)
	case a.Status >= 200:
		stalled := time.AfterFunc(errorBodyWait, stop)
		defer stalled.Stop()
		// Part of an error's body is enough: the status is known.
		a.Body, _ = readBody(resp, maxErrorBody)
	default: // a protocol switch: what follows is not a body, and may never end
	}
}

// readBody reads a body that may have at most limit bytes, and skips the byte order
// mark that some gateways put before JSON (RFC 8259, 8.1). With an error it returns
// what it has read.
func readBody(resp *http.Response, limit int) ([]byte, error) {
	body, err := readWhole(resp, limit)
	return bytes.TrimPrefix(body, []byte("\ufeff")), err
}

func readWhole(resp *http.Response, limit int) ([]byte, error) {
	if n := resp.ContentLength; n > 0 && n <= int64(limit) {
		body := make([]byte, n)
		read, err := io.ReadFull(resp.Body, body)
		return body[:read], err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if len(body) > limit {
		return body[:limit], errTooLarge
	}
	return body, err
}
