package exchange

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// answering is a transport that answers with a body of the request's context.
type answering struct {
	http.Response
	body func(context.Context) io.Reader
	ctx  context.Context
}

func (a *answering) RoundTrip(req *http.Request) (*http.Response, error) {
	a.ctx = req.Context()
	a.Body = io.NopCloser(a.body(a.ctx))
	return &a.Response, nil
}

// until is the rest of a body that does not come before its context ends.
type until struct{ context.Context }

func (u until) Read([]byte) (int, error) {
	<-u.Done()
	return 0, io.ErrUnexpectedEOF
}

// again reads its bytes again and again.
type again struct {
	whole []byte
	bytes.Reader
}

func (a *again) Read(p []byte) (int, error) {
	if a.Len() == 0 {
		a.Reset(a.whole)
	}
	return a.Reader.Read(p)
}

func packed(text string) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return buf.Bytes()
}

// TestBodies are read to their end, or to the bounds on what comes and on what it
// unpacks to. A length that a transport has left when it unpacked the body is not
// believed.
func TestBodies(t *testing.T) {
	const text = `{"ok":true}`
	fixed := func(r io.Reader) func(context.Context) io.Reader { return func(context.Context) io.Reader { return r } }
	plain := func(s string) func(context.Context) io.Reader { return fixed(strings.NewReader(s)) }
	hanging := func(ctx context.Context) io.Reader { return io.MultiReader(strings.NewReader(text), until{ctx}) }
	for name, tt := range map[string]struct {
		status  int
		length  int64
		coding  string
		body    func(context.Context) io.Reader
		want    string
		err     error
		elapsed time.Duration
	}{
		"no length":             {200, -1, "", plain(text), text, nil, 0},
		"unpacked, was longer":  {200, 5, "", plain(text), text, nil, 0},
		"unpacked, was shorter": {200, 500, "", plain(text), text, nil, 0},
		"a byte order mark":     {200, -1, "", plain("\ufeff" + text), text, nil, 0},
		"packed":                {200, 40, "gzip", fixed(bytes.NewReader(packed(text))), text, nil, 0},
		"not packed":            {200, 40, "gzip", plain(text), "", gzip.ErrHeader, 0},
		"packed without end":    {200, -1, "gzip", fixed(&again{whole: packed("")}), "", errTooLarge, 0},
		"unpacks without end":   {200, -1, "gzip", fixed(&again{whole: packed(strings.Repeat(" ", 1<<20))}), strings.Repeat(" ", 1<<20), errTooLarge, 0},
		"packed error":          {400, -1, "gzip", fixed(&again{whole: packed("")}), "", nil, 0},
		"no end":                {200, int64(len(text)), "", hanging, text, nil, 5 * time.Second},
		"cut":                   {200, 500, "", hanging, text, io.ErrUnexpectedEOF, time.Minute},
		"error without end":     {400, -1, "", hanging, text, nil, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			resp := &answering{Response: http.Response{StatusCode: tt.status, ContentLength: tt.length, Header: http.Header{"Content-Encoding": {tt.coding}}}, body: tt.body}
			answer := New(resp).Send(t.Context(), Request{Method: http.MethodGet, URL: &url.URL{}, Deadline: begin.Add(time.Minute)})
			assert.Equal(t, tt.want, string(answer.Body), name)
			assert.Equal(t, tt.err, answer.Err, name)
			assert.Equal(t, tt.elapsed, time.Since(begin), name)
			assert.Error(t, resp.ctx.Err(), "%s: the request is over", name)
		})
	}
}
