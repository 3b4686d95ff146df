package e2e_test

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

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// The fault matrix, continued: answers that arrive whole, and contexts that end.

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

// TestAnswerMatrix: each status, or both ends of a range that is treated alike, with
// each body, for every endpoint.
func TestAnswerMatrix(t *testing.T) {
	page := newPage("Status", "Body", "GET, PUT, DELETE", "POST")
	for _, statuses := range [][2]int{{200, 299}, {300, 428}, {429, 429}, {430, 499}, {500, 501}, {502, 504}, {505, 599}} {
		rows := answerRowsOf(t, statuses[0])
		assert.Equal(t, rows, answerRowsOf(t, statuses[1]), "the ends of %v", statuses)
		for _, r := range rows {
			page.row(strings.TrimSuffix(fmt.Sprintf("%d to %d", statuses[0], statuses[1]), " to 429"), r.bodies, r.columns[0], r.columns[1])
		}
	}
	page.hold(t, "answers")
}

// answerRow are bodies that one status treats alike.
type answerRow struct {
	bodies  string
	columns [2]string
}

// answerRowsOf leaves the status out of the outcomes: it names the row.
func answerRowsOf(t *testing.T, status int) (rows []answerRow) {
	for _, b := range answerBodies {
		a := clienttest.Answer{Status: status, Body: b.body}
		found := columns(t, fmt.Sprintf("%d with %s", status, b.name), clienttest.Calls, status == http.StatusTooManyRequests, func(call clienttest.Call, _ bool) cell {
			c, _ := answered(t, a, call.Do)
			c.outcome = strings.TrimSuffix(c.outcome, fmt.Sprintf(" %d", status))
			return c
		})
		if n := len(rows); n > 0 && rows[n-1].columns == found {
			rows[n-1].bodies += ", " + b.name
			continue
		}
		rows = append(rows, answerRow{b.name, found})
	}
	if len(rows) == 1 {
		rows[0].bodies = "any"
	}
	return rows
}

func TestRetryAfterMatrix(t *testing.T) {
	const date = "Sun, 06 Nov 1994 08:49:00 GMT"
	page := newPage("`Retry-After`", "What happens", "`RetryAfter` of the error")
	for _, value := range []string{
		"30", "0.25", "1.5", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
		"Sun, 06 Nov 1994 08:48:00 GMT", "Sun, 13 Nov 1994 08:49:00 GMT", "0", "-5", "NaN", "1e309", "9223372037", "72000", "soon", "",
	} {
		var told time.Duration
		row := columns(t, value, clienttest.Calls, true, func(call clienttest.Call, _ bool) cell {
			c, err := answered(t, clienttest.Answer{Status: 429, Header: http.Header{"Retry-After": {value}, "Date": {date}}}, call.Do)
			told, _ = agentmessaging.RetryAfter(err)
			return c
		})
		assert.Equal(t, row[0], row[1], "Retry-After %q", value)
		name := "`" + value + "`"
		if value == "" {
			name = "empty"
		}
		page.row(name, row[0], told.String())
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
		answer clienttest.Answer
	}{
		{"before the call", 0, clienttest.OK},
		{"before the answer", 5 * time.Second, clienttest.Answer{Before: hang, Err: context.Canceled}},
		{"inside the answer's body", -1, clienttest.Answer{Status: 200, Reader: cutShort}},
		{"just as the success arrives", -1, clienttest.OK},
		{"during the wait after a 429", 5 * time.Second, clienttest.Limited("60", "")},
		{"during the wait after a failed dial", 200 * time.Millisecond, clienttest.NotDialed},
	} {
		row := columns(t, moment.name, clienttest.Calls, false, func(call clienttest.Call, _ bool) cell {
			return endedDuring(t, moment.after, moment.answer, call.Do)
		})
		page.row(moment.name, row[0], row[1])
	}
	page.hold(t, "context")
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, context.Canceled }

func endedDuring(t *testing.T, after time.Duration, a clienttest.Answer, do clienttest.Do) (c cell) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		end := func() { cancel(reason) }
		switch {
		case after == 0:
			end()
		case after < 0:
			a.Before = func(*http.Request) { end() }
		default:
			time.AfterFunc(after, end)
		}
		transport := clienttest.Answering(a)
		begin := time.Now()
		err := do(ctx, clienttest.New(t, transport, clienttest.Jitter(0)))
		c = cell{len(transport.Sent()), clienttest.Outcome(err), time.Since(begin)}
		clienttest.HoldsLaws(t, err, "canary")
		if err != nil {
			assert.ErrorIs(t, err, context.Canceled)
			assert.ErrorIs(t, err, reason)
		}
	})
	return c
}
