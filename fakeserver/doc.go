// Package fakeserver is the whole Agent Messaging Service in memory, for
// tests of programs that use it.
//
//	fake := fakeserver.New(t)
//	client := fake.HTTPClient(t) // real net/http at both ends, no socket
//	req, _ := http.NewRequest("GET", fake.BaseURL()+"/v1/status", nil)
//	req.Header.Set("Authorization", "Bearer "+fake.Key())
//	resp, err := client.Do(req)
//
// A Server is an http.Handler with the nine endpoints of interface section 4,
// their rules, limits and error bodies. It opens no socket and starts no
// goroutine until it is called. HTTPClient reaches it over in-memory
// connections that behave as TCP does, Direct calls it without any connection,
// and httptest.NewServer puts it on a socket. The client of this module takes
// either: agentmessaging.WithHTTPClient(fake.HTTPClient(t)).
//
// What a test gets wrong, such as a key that the fake did not issue, panics in
// the methods of Server, with a message that says so. What the tested program
// gets wrong is answered as the service would answer it.
//
// # Keys and limits
//
// Key is the default API key; IssueKey makes others, each an account of its
// own, on the plans of interface 8.2 or not issued by the dashboard. SetPlan
// and RevokeKey change them. Calls spend the limits of interface 8, by the rules
// below; Exhaust spends one at once, WithLimit changes its maximum, and
// Limits shows where they stand.
//
// # Scripts
//
// An agent replies "You wrote: " and the text, unless OnMessage has a script
// for the message: texts in order, or a function. Matchers (ByText, ByAgent,
// ByKey, Where and others) choose what a script, a fault or a record is about;
// several must all match.
//
// # Time
//
// The fake reads time.Now at the moment of use, so it follows the clock of a
// testing/synctest bubble: a client that waits for the next day takes
// milliseconds. One fake may serve several bubbles and the outside at once,
// as long as each has an API key of its own (IssueKey); where the limits per
// address matter, each also wants an address of its own (FromIP). Advance
// moves the clock without a bubble.
//
// # Faults
//
// Inject makes calls go wrong: an error status, a gateway's HTML, latency, an
// answer that never comes, breaks off or drips, a connection that closes or is
// reset. LoseReply lets a call have its effect first and loses the answer then,
// which is what a client that repeats calls must be tested with.
//
// # Records and state
//
// Calls are kept, redacted and bounded: Calls returns them, AwaitCalls waits for
// them, OnCall is told of each, WriteCalls and WriteHAR write them, and a test
// that fails has the newest in its log. What no test can mean fails it: a call that no endpoint is there
// for, unless WithUnknownRoutes, and a script or fault that is Required and was
// never used; both name what came nearest. AddAgent, AddExchanges and StoreBYOK
// put state in place without calls, Snapshot and Restore bring it back, and
// WriteState and ReadState keep it in a file.
//
// # Where the interface is silent
//
// The interface does not show everything: the order of checks, what a refused
// call spends, error identifiers, the shape of identifiers and times and more.
// There the fake decides, and says so where it does. In short: a call is
// checked in the order route 404, method 405, key 401, plan 402, request
// limits 429, permission 403, body 400, agent 404, state 409 and 503,
// operation limits 429; a call that a limit refuses spends nothing. A 429 that a
// ReplyFunc or a LoseReply answers has spent what the message costs, since that
// was accepted before; one of Inject in place of a call has not.
//
// # Not modelled
//
// A language model, SMS traffic, key expiry and agent states other than
// active.
package fakeserver
