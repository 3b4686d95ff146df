// Package fakeserver is the whole Agent Messaging Service in memory, for
// tests of programs that use it.
//
//	fake := fakeserver.New(t)
//	client := fake.HTTPClient(t) // real net/http at both ends, no socket
//	req, err := http.NewRequest("GET", fake.BaseURL()+"/v1/status", nil)
//	if err != nil {
//		t.Fatal(err)
//	}
//	req.Header.Set("Authorization", "Bearer "+fake.Key())
//	resp, err := client.Do(req)
//	if err != nil {
//		t.Fatal(err)
//	}
//	defer resp.Body.Close() // 200, and {"ok":true,"service":"agent-messaging-fake", ...}
//
// "Interface 4.6" in these pages names a section of the service's interface
// document.
//
// A Server is an http.Handler with the endpoints of interface section 4,
// their rules, limits and error bodies. It opens no socket, and starts no
// goroutine before the first call. Programs reach it in one of three ways:
//
//   - HTTPClient returns a client with in-memory connections, which behave as
//     TCP does. The client of this module takes it with
//     agentmessaging.WithHTTPClient(fake.HTTPClient(t)).
//   - Direct returns a RoundTripper without any connection, which is faster.
//   - httptest.NewServer(fake) listens on a socket.
//
// A mistake of the test, such as a key that the fake did not issue, makes the
// method of Server panic with a sentence that says what is wrong. A mistake of
// the tested program is answered as the service would answer it.
//
// # Keys and limits
//
// Key returns the default API key. IssueKey makes more: each is an account with
// its own agents and limits, on a plan of interface 8.2, dashboard-issued or
// not. SetPlan, RevokeKey and ReinstateKey change a key. Calls spend the limits
// of interface 8, and the fake answers 429 when one is used up. Exhaust uses up
// a limit at once, WithLimit changes its maximum, Limits shows its state.
//
// # Scripts
//
// An agent replies "You wrote: " and the text, unless OnMessage made a script for the message.
// A script replies with texts in order (Reply), or with what a function returns (ReplyFunc).
// Matchers (ByText, ByAgent, ByKey, Where and others) choose the messages of a script. They
// also choose the calls that a fault acts on, and the records that Calls returns. If several
// matchers are given, a call must match all of them.
//
// # Time
//
// The fake reads time.Now whenever it needs the time, so it follows the clock of a
// testing/synctest bubble: a client that waits for the next minute takes milliseconds.
// One fake may serve several bubbles and the outside at once if each has its own API key
// (IssueKey) and its own address (FromIP): the limits per address count all calls from an
// address, and the times of bubbles differ. Advance moves the clock without a bubble.
// With agentmessaging.WithClock(fake) a client's waits move it.
//
// # Faults
//
// Inject makes calls go wrong: an error status, a gateway's HTML, latency, an
// answer that never comes, breaks off or drips, a connection that is refused,
// closes or is reset. Change changes the state just before a call. LoseReply lets
// a call have its effect and then loses the answer: test every client that
// repeats calls with it.
//
// # Records and state
//
// The fake records each call: the request, the answer that the service decided, and the answer
// that the client got, which differs where a fault acted. A record has a bounded size, and API
// keys and texts are redacted in it (WithMessageTexts keeps the texts). Call.Why says, with
// numbers, why a call was refused and what a fault did to it.
//
//   - Calls returns the newest answered calls, and CallCount counts them.
//   - UnderWay returns the calls whose answer has not been sent to its end.
//   - AwaitCalls waits until a number of calls has been answered.
//   - OnCall shows each call to a function.
//   - WriteCalls writes them as JSON Lines.
//   - A test that fails logs the newest 50.
//
// These fail a test: a call to a path or method that no endpoint has (WithUnknownRoutes allows
// it), a Required script or fault that was never used, a callback or a clock that panics, a
// ReplyFunc with a status that interface 4.8 does not list, and a key that is used at a time
// more than a day before its last call, for example outside a bubble and then in one. A message
// about a script or fault names the line of the test that made it. For a Required one that was
// never used, it also names the call that came nearest.
//
// AddAgent, AddExchanges and StoreBYOK set up state without calls. WriteState
// writes the state to a file, and ReadState reads it back.
//
// # Where the interface is silent
//
// The interface leaves open the order of checks, what a refused call spends, error identifiers,
// the form of identifiers and times, and more. There the fake decides. Decisions lists the
// decisions that can be changed, WithDecision changes one, and Like takes them from the file
// that observe.Run wrote about a service. docs/fake.md of this module also lists the fixed
// decisions.
//
// By default a call is checked in this order: route 404, method 405, key 401, plan 402, request
// limits 429, permission 403, body 400, agent 404, state 503 and 409, operation limits 429. A
// warm-up with a wrong body has no mode, so a key that is not dashboard-issued gets 400 for it
// and not 403. Request limits count every call to an endpoint that may answer 429, once it has
// passed the checks before them; operation limits count only creations, BYOK sets or warm-ups
// that succeed.
//
// A call that a limit refuses spends nothing. A 429 from a ReplyFunc, or from a fault in
// LoseReply, comes after the service accepted the call, so the call has spent its limits. A 429
// that Inject answers instead of the service spends nothing.
//
// # Not modelled
//
// A language model, SMS traffic, key expiry and agent states other than
// active.
package fakeserver
