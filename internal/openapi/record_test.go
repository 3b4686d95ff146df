package openapi_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// record judges all exchanges of a run and keeps what does not agree.
type record struct {
	validator *validator
	mu        sync.Mutex
	judged    int
	invalid   int             // requests that the document refuses
	seen      map[string]bool // "SendMessage 404"
	used      map[string]bool // exceptions, by their pattern and status
	verdicts  map[string]verdict
	wrong     []string
}

func newRecord(t testing.TB) *record {
	return &record{validator: newValidator(t), seen: map[string]bool{}, used: map[string]bool{}, verdicts: map[string]verdict{}}
}

// through is the client with the record on its way; tb's name is that of the
// case.
func (r *record) through(tb testing.TB, client *http.Client) *http.Client {
	_, id, _ := strings.Cut(tb.Name(), "/")
	client.Transport = recording{r, strings.TrimPrefix(id, "cases/"), client.Transport}
	return client
}

type recording struct {
	to   *record
	id   string
	next http.RoundTripper
}

func (t recording) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	sent, err := reread(&out.Body)
	if err != nil {
		return nil, err
	}
	res, err := t.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	received, err := reread(&res.Body)
	if err != nil {
		return nil, err
	}
	t.to.add(t.id, exchange{req, sent, res.StatusCode, res.Header, received})
	return res, nil
}

// reread reads a body and leaves a copy in its place.
func reread(body *io.ReadCloser) ([]byte, error) {
	if *body == nil || *body == http.NoBody {
		return nil, nil
	}
	content, err := io.ReadAll(*body)
	err = errors.Join(err, (*body).Close())
	*body = io.NopCloser(bytes.NewReader(content))
	return content, err
}

// number is that of a call in the identifier of its trace.
var number = regexp.MustCompile(`"trace_[0-9]+"`)

// judge looks at exchanges once that differ in nothing but the number of their
// trace: the cases that fill a day's limit make tens of thousands.
func (r *record) judge(x exchange) verdict {
	key := fmt.Sprintf("%s %s %q %q\n%s\n%d %q\n%s", x.req.Method, x.req.URL.EscapedPath(),
		x.req.Header["Authorization"], x.req.Header["Content-Type"], x.sent,
		x.status, [][]string{x.header["Content-Type"], x.header["Retry-After"]}, number.ReplaceAll(x.received, nil))
	r.mu.Lock()
	v, known := r.verdicts[key]
	r.mu.Unlock()
	if !known {
		v = r.validator.judge(x)
		r.mu.Lock()
		r.verdicts[key] = v
		r.mu.Unlock()
	}
	return v
}

func (r *record) add(id string, x exchange) {
	v := r.judge(x)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judged++
	if v.request != nil {
		r.invalid++
	}
	if v.operation != "" {
		r.seen[fmt.Sprint(v.operation, " ", x.status)] = true
	}
	for _, problem := range r.problems(id, x, v) {
		r.wrong = append(r.wrong, fmt.Sprintf("%s: %s %s %.200q answered %d: %s", id, x.req.Method, x.req.URL.Path, x.sent, x.status, problem))
	}
}

// problems lists where the service and the document disagree.
func (r *record) problems(id string, x exchange, v verdict) []string {
	if v.operation == "" {
		if x.status != http.StatusNotFound && x.status != http.StatusMethodNotAllowed {
			return []string{"the document has no such operation"}
		}
		return nil
	}
	var list []string
	if v.answer != nil {
		list = append(list, "the reply: "+firstLine(v.answer))
	}
	if disagree(x.status, v.request) && !r.excepted(id, x.status) {
		list = append(list, fmt.Sprintf("the document finds this request valid: %t (%s)", v.request == nil, firstLine(v.request)))
	}
	return list
}

// disagree reports whether the status tells another story about the request
// than the document does.
func disagree(status int, invalid error) bool {
	switch status {
	case http.StatusOK, http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable:
		return invalid != nil // the body had been looked at
	case http.StatusBadRequest, http.StatusUnauthorized:
		return invalid == nil
	default: // 402, 403 and 429 are answered before the body is looked at
		return false
	}
}

func firstLine(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
