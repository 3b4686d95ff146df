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
//
// A Server is an http.Handler with the nine endpoints of interface section 4,
// their rules, limits and error bodies. It opens no socket, and starts no
// goroutine before the first call. There are three ways to it: HTTPClient over
// in-memory connections that behave as TCP does, Direct without any connection,
// and httptest.NewServer over a socket. The client of this module takes the
// first with agentmessaging.WithHTTPClient(fake.HTTPClient(t)).
//
// A mistake of the test, such as a key that the fake did not issue, makes the
// method of Server panic with a sentence about it. A mistake of the tested
// program is answered as the service would answer it.
//
// # Keys and limits
//
// Key is the default API key. IssueKey makes more: each is an account with its
// own agents and limits, on a plan of interface 8.2, dashboard-issued or not.
// SetPlan and RevokeKey change a key. Calls spend the limits of interface 8.
// Exhaust closes a limit, WithLimit changes its maximum, Limits shows its state.
//
// # Scripts
//
// An agent replies "You wrote: " and the text, unless OnMessage has a script
// for the message: texts in order, or a function. Matchers (ByText, ByAgent,
// ByKey, Where and others) choose the calls of a script, a fault or a record.
// Of several matchers all must match.
//
// # Time
//
// The fake reads time.Now whenever it needs the time, so it follows the clock of
// a testing/synctest bubble: a client that waits for the next day takes
// milliseconds. One fake may serve several bubbles and the outside at once if
// each has its own API key (IssueKey). If a test is about the limits per
// address, each needs its own address too (FromIP). Advance moves the clock
// without a bubble. With agentmessaging.WithClock(fake) a client's waits move it.
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
// The fake keeps the calls, redacted and bounded, with the answer that it decided
// and what the client got of it, until it had all or left. Each says in Why why it
// was refused, with numbers. Calls returns them, UnderWay those that nobody has had
// the answer of, AwaitCalls waits for them, OnCall shows each to a function,
// WriteCalls writes them, and a test that fails logs the newest. Two things always
// fail a test: a call that no endpoint answers, unless WithUnknownRoutes, and a
// Required script or fault that was never used. Both name the nearest miss.
// AddAgent, AddExchanges and StoreBYOK set up state without calls. WriteState and
// ReadState keep a state in a file, or bring it back.
//
// # Where the interface is silent
//
// The interface leaves open the order of checks, what a refused call spends,
// error identifiers, the form of identifiers and times, and more. There the
// fake decides: Decisions lists every decision, WithDecision changes one, and
// Like takes them from a service that observe.Run has asked. By default a
// call is checked in this order: route 404, method 405, key 401, plan 402,
// request limits 429, permission 403, body 400, agent 404, state 503 and 409,
// operation limits 429.
// A call that a limit refuses spends nothing. A 429 of a ReplyFunc or a
// LoseReply has spent the limits of its message, which was accepted before. A
// 429 that Inject answers instead of a call has spent nothing.
//
// # Not modelled
//
// A language model, SMS traffic, key expiry and agent states other than
// active.
package fakeserver
