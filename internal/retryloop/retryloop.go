// Package retryloop repeats the attempts of a call. go-retryablehttp runs the loop, and an
// http.Client adds the jar's cookies and stores those of the answers. No other package uses the
// two for this. A Call sends, decides and waits.
package retryloop

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// A Call makes the attempts that a Loop repeats.
type Call interface {
	// Attempt makes an attempt, with the given cookies. It returns what the cookie jar needs
	// of the answer; status 0 means that none came.
	Attempt(cookies []string) (status int, header http.Header)
	// PlanNext plans another attempt, and reports whether there is one.
	PlanNext() bool
	// Pause waits before the next attempt. An error ends the loop.
	Pause() error
}

// Loop holds the state of Run. A call contains its Loop, which saves an allocation.
//
// The library and http.Client see a request and a response without a body. With the real
// request, they would copy header and body for each attempt, which would cost a POST eight
// allocations more.
type Loop struct {
	call       Call
	library    retryablehttp.Client
	httpClient http.Client
	request    http.Request
	response   http.Response
}

// Run makes attempts until no other one follows, or Pause fails. It returns the error of
// Pause. For a Call, the library's loop is this one:
//
//	for {
//		call.Attempt(cookies)
//		if !call.PlanNext() {
//			return nil
//		}
//		if err := call.Pause(); err != nil {
//			return err
//		}
//	}
func (l *Loop) Run(ctx context.Context, method string, u *url.URL, jar http.CookieJar, call Call) error {
	l.call = call
	l.httpClient = http.Client{Transport: l, Jar: jar, CheckRedirect: noRedirect}
	l.library = retryablehttp.Client{
		HTTPClient:   &l.httpClient,
		RetryMax:     math.MaxInt, // PlanNext decides
		CheckRetry:   func(context.Context, *http.Response, error) (bool, error) { return l.call.PlanNext(), nil },
		PrepareRetry: func(*http.Request) error { return l.call.Pause() },
		// No backoff here: the library calls Pause next, which waits by the client's clock.
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return 0 },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	l.request = *(&http.Request{Method: method, URL: u, Header: http.Header{}}).WithContext(ctx)
	_, err := l.library.Do(&retryablehttp.Request{Request: &l.request}) //nolint:bodyclose // it is http.NoBody
	return err
}

// noRedirect makes http.Client return a redirect like any other answer. To follow it
// would send the key and the body to an address that the caller did not choose.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// RoundTrip makes one attempt. The library never gets the user's transport, because it would
// close the idle connections.
func (l *Loop) RoundTrip(req *http.Request) (*http.Response, error) {
	cookies := req.Header["Cookie"]
	delete(req.Header, "Cookie") // http.Client adds the jar's cookies again to each attempt
	l.response = http.Response{Body: http.NoBody}
	l.response.StatusCode, l.response.Header = l.call.Attempt(cookies)
	return &l.response, nil
}
