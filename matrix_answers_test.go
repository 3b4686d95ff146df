package agentmessaging_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// The fault matrix, continued: answers that arrive whole.

// answerBodies are what a service, or a proxy before it, may answer with.
var answerBodies = []struct{ name, body string }{
	{"documented", okBody},
	{"other JSON", `{"unknown":[1,2]}`},
	{"JSON array", `[1]`},
	{"HTML", "<html><body>gateway</body></html>"},
	{"empty", ""},
	{"broken JSON", okBody[:len(okBody)-3]},
	{"two documents", "{}{}"},
}

// answered makes one call that is answered with a, in virtual time.
func answered(t *testing.T, a answer, do func(context.Context, *agentmessaging.Client) error) (c cell, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		transport := &stub{answers: []answer{a}}
		client := newClient(t, transport, agentmessaging.WithRandom(func() float64 { return 0 }))
		begin := time.Now()
		err = do(t.Context(), client)
		c = cell{len(transport.sent()), describe(err), time.Since(begin)}
		holdsLaws(t, err, "canary")
	})
	return c, err
}

// row runs all endpoints against one answer and returns the two columns.
func answerRow(t *testing.T, a answer, what string) (row [2]string) {
	t.Helper()
	for _, call := range nineCalls {
		c, _ := answered(t, a, call.do)
		c.outcome = strings.TrimSuffix(c.outcome, fmt.Sprintf(" %d", a.status)) // the status is in the row's name
		column := columnOf(call.method)
		if column == 1 && a.status != http.StatusTooManyRequests {
			assert.LessOrEqual(t, c.requests, 1, "%s, %s: a POST is never doubled", call.name, what)
		}
		if row[column] == "" {
			row[column] = c.String()
		}
		assert.Equal(t, row[column], c.String(), "%s, %s: the endpoints differ", call.name, what)
	}
	return row
}

// TestAnswerMatrix: every status from 200 to 599 with every body. Statuses
// that are treated alike share rows of the page.
func TestAnswerMatrix(t *testing.T) {
	var (
		page  = newPage("Status", "Body", "GET, PUT, DELETE", "POST")
		first = 200
		rows  = rowsOf(t, first)
	)
	for status := 201; status <= 600; status++ {
		var next []answerRows
		if status < 600 {
			next = rowsOf(t, status)
		}
		if fmt.Sprint(next) == fmt.Sprint(rows) {
			continue
		}
		name := fmt.Sprint(first)
		if status-1 > first {
			name = fmt.Sprintf("%d to %d", first, status-1)
		}
		for _, r := range rows {
			page.row(name, r.bodies, r.row[0], r.row[1])
		}
		first, rows = status, next
	}
	page.hold(t, "answers")
}

// answerRows are the bodies that one status treats alike.
type answerRows struct {
	bodies string
	row    [2]string
}

func rowsOf(t *testing.T, status int) (rows []answerRows) {
	for _, b := range answerBodies {
		row := answerRow(t, answer{status: status, body: b.body}, fmt.Sprintf("%d with %s", status, b.name))
		if n := len(rows); n > 0 && rows[n-1].row == row {
			rows[n-1].bodies += ", " + b.name
			continue
		}
		rows = append(rows, answerRows{b.name, row})
	}
	if len(rows) == 1 {
		rows[0].bodies = "any"
	}
	return rows
}

func TestContentTypeDoesNotMatter(t *testing.T) {
	for _, contentType := range []string{"", "text/html", "application/json; charset=utf-8", "nonsense"} {
		c, _ := answered(t, answer{status: 200, body: okBody, header: http.Header{"Content-Type": {contentType}}}, post)
		assert.Equal(t, "success", c.outcome)
	}
}

func TestRedirectMatrix(t *testing.T) {
	page := newPage("Status", "Location", "GET, PUT, DELETE", "POST")
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, target := range []struct{ name, location string }{
			{"the same host", "/elsewhere"}, {"another port", testURL + ":8443/"},
			{"another host", "https://other.example/?key=" + testKey}, {"a downgrade to http", "http://service.example/"},
		} {
			a := answer{status: status, header: http.Header{"Location": {target.location}}}
			row := answerRow(t, a, target.name)
			page.row(fmt.Sprint(status), target.name, row[0], row[1])
		}
	}
	page.hold(t, "redirects")
}

func TestRetryAfterMatrix(t *testing.T) {
	const date = "Sun, 06 Nov 1994 08:49:00 GMT"
	page := newPage("Retry-After", "What happens", "Told to the caller")
	for _, value := range []string{
		"30", "0.25", "1.5", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
		"Sun, 06 Nov 1994 08:48:00 GMT", "0", "-5", "NaN", "1e309", "9223372037", "72000", "soon", "",
	} {
		var cells [2]string
		for i, call := range nineCalls {
			a := answer{status: 429, header: http.Header{"Retry-After": {value}, "Date": {date}}}
			c, err := answered(t, a, call.do)
			var failure *agentmessaging.Error
			require.ErrorAs(t, err, &failure)
			got := [2]string{c.String(), failure.RetryAfter.String()}
			if i == 0 {
				cells = got
			}
			assert.Equal(t, cells, got, "%s, %q: the endpoints differ", call.name, value)
		}
		page.row("`"+value+"`", cells[0], cells[1])
	}
	page.hold(t, "retry-after")
}

// TestContextMatrix: the context ends at each moment of a call.
func TestContextMatrix(t *testing.T) {
	page := newPage("The context ends", "GET, PUT, DELETE", "POST")
	hang := func(req *http.Request) { <-req.Context().Done() }
	cutShort := func() io.Reader { return io.MultiReader(strings.NewReader(okBody[:20]), errReader{}) }
	for _, moment := range []struct {
		name   string
		after  time.Duration // 0: before the call; negative: when the transport is called
		answer answer
	}{
		{"before the call", 0, answer{status: 200, body: okBody}},
		{"before the answer", 5 * time.Second, answer{before: hang, err: context.Canceled}},
		{"inside the answer's body", -1, answer{status: 200, reader: cutShort}},
		{"just as the success arrives", -1, answer{status: 200, body: okBody}},
		{"during the wait after a 429", 5 * time.Second, answer{status: 429, header: retryAfter("60")}},
		{"during the wait after a failed dial", 200 * time.Millisecond, answer{err: dialError}},
	} {
		var row [2]string
		for _, call := range nineCalls {
			c := endedDuring(t, moment.after, moment.answer, call.do)
			column := columnOf(call.method)
			if row[column] == "" {
				row[column] = c.String()
			}
			assert.Equal(t, row[column], c.String(), "%s, %s: the endpoints differ", call.name, moment.name)
		}
		page.row(moment.name, row[0], row[1])
	}
	page.hold(t, "context")
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, context.Canceled }

func endedDuring(t *testing.T, after time.Duration, a answer, do func(context.Context, *agentmessaging.Client) error) (c cell) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		switch {
		case after == 0:
			cancel()
		case after < 0:
			a.before = func(*http.Request) { cancel() }
		default:
			time.AfterFunc(after, cancel)
		}
		transport := &stub{answers: []answer{a}}
		begin := time.Now()
		err := do(ctx, newClient(t, transport, agentmessaging.WithRandom(func() float64 { return 0 })))
		c = cell{len(transport.sent()), describe(err), time.Since(begin)}
		holdsLaws(t, err, "canary")
		assert.True(t, err == nil || errors.Is(err, context.Canceled), "the cause stays reachable: %v", err)
	})
	return c
}
