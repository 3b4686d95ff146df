// Package agentmessaging is the client of the Agent Messaging Service: it
// creates conversational agents and exchanges text messages with them.
//
//	client, err := agentmessaging.NewClient(baseURL, apiKey)
//	if err != nil {
//		return err // the address or the key cannot be right
//	}
//	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{SystemPrompt: "Be brief."})
//	if err != nil {
//		return err
//	}
//	reply, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello"})
//	if err != nil {
//		return err // if it is ErrOutcomeUnknown, the agent may have read the message
//	}
//	fmt.Println(reply.Text)
//
// The service's dashboard issues API keys; [NewClientFromEnv] takes address and
// key from the environment. Make one [Client] for each key and keep it for the
// life of the program. The examples show the calls on a fake of
// the service. The module also has these packages:
//
//   - [github.com/agent-messaging-service/agentmessaging-go/fakeserver], the fake,
//   - [github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest],
//     which gives a test a client and its fake,
//   - [github.com/agent-messaging-service/agentmessaging-go/sweep], which tests an
//     application with every failure at every call,
//   - [github.com/agent-messaging-service/agentmessaging-go/pacer], which spreads
//     calls over a limit,
//   - [github.com/agent-messaging-service/agentmessaging-go/contract], which checks
//     a service against its documentation,
//   - [github.com/agent-messaging-service/agentmessaging-go/observe], which finds
//     out how a service answers what its documentation leaves open.
//
// "Interface 4.6" in these pages names a section of the service's interface
// document. The service is in preview; its limits may change.
//
// # Errors
//
// Every method returns one of three error types: [*ValidationError] when the
// arguments break a documented bound and nothing was sent, [*OutcomeUnknownError]
// when a POST may have been carried out (its answer was lost, or is a 5xx that
// the interface does not list for it), and [*Error] for every other failure: an
// answer that is no documented success, no answer, or a call that a limit or the
// context stopped before it was sent. Test for a kind with errors.Is and
// [ErrRateLimited] and its siblings, read the details with errors.As. The methods
// list the kinds that the interface documents. Any call may also meet
// [ErrServer], another answer of a proxy, no answer at all, or the end of its
// context. docs/errors.md of this module says what to do about each.
//
// # Retries
//
// A call makes up to three attempts ([RetryPolicy]). A 429 does not count. Nor does
// an attempt that follows at once on a new HTTP/2 connection because the old one
// was closing and did not take the request; a call has at most two of these
// ([CallInfo].Renewals). What happens after an attempt depends on how it ended and
// on whether repeating is harmless:
//
//	outcome of an attempt                GET, PUT, DELETE   POST
//	-----------------------------------  -----------------  ---------------
//	2xx with a readable documented body  success            success
//	never sent                           retry              retry
//	answer lost, truncated or not JSON   retry              outcome unknown
//	429                                  retry              retry
//	502, 503, 504                        retry              outcome unknown
//	503 that the interface lists         retry              error
//	another 5xx                          error              outcome unknown
//	any other answer                     error              error
//	certificate or CONNECT refused       error              error
//	context ended before the request     error              error
//	context ended after the request      error              outcome unknown
//	refused by the limiter               error              error
//
// "503 that the interface lists" is a 503 with an error code in its body, from an
// endpoint that lists 503. Without the code it counts as any other 503. A status above
// 599, which HTTP does not know, counts as "another 5xx", but is no [ErrServer].
//
// A call's wait is never shorter than the answer's Retry-After, of which a day at most is
// believed; jitter makes it longer. A wait that would pass the deadline of the context, or
// [RetryPolicy].MaxWait, is not begun: the error is returned at once with RetryAfter set.
// Where the Retry-After of a 429 is 0, missing or unreadable, the wait is at least 1 s.
//
// An attempt spends quota on the six endpoints that may answer 429, unless it is
// refused (our reading of interface 4 and 8). So a client and all that With makes of it
// share a budget for retries of failures that the service may have seen: a fifth of the
// calls that succeed, and two a second, of which ten are saved up at most. If the
// budget is empty, the error says so. What was never sent, such as a connection
// refused, draws nothing.
//
// # Limits
//
// A 429 is not a failure: the service has done nothing, and says when to come back. It
// never counts against [RetryPolicy].MaxAttempts. What follows is called the cool-down:
//
//   - The refused call waits until Retry-After has passed, and so do all calls to its
//     endpoint (interface 8.3).
//   - Then they go in turn, at the pace of the limit once that is known. A call waits as
//     long as others get through its limit.
//   - While nobody gets through, the client tries less and less often. After an upgrade of
//     the plan, a new client does not wait for the old limit.
//   - Endpoints where the client has seen the same limit_key wait too. But two limits may
//     have the same name: so an endpoint that was not refused this time tries one call
//     after a second, and goes on if the service accepts it. Without a limit_key each
//     endpoint counts as a limit of its own.
//
// A call fails with the 429
//
//   - at once, if the limit opens too late for its deadline or [RetryPolicy].MaxWait,
//   - at its deadline, if that comes while it is in line,
//   - when the service refuses again after letting nobody through for the time of
//     [WithTimeout],
//   - if MaxAttempts is 1, which retries nothing. The call still waits in line before it is sent.
//
// The error has RetryAfter set, unless its deadline came in line, and [Error].Local if its
// last attempt was not sent.
//
// With [WithoutCoolDown] each refused call waits alone. [WithLimiter] adds a [Limiter]
// that is asked after the cool-down. The one of package pacer takes its place: it holds
// calls back before the service refuses them, for one process or for all that share a key.
//
// # Time
//
// The deadline of the context bounds a call, its attempts and waits together.
// Where the context has none, [WithTimeout] bounds the attempts and the waits
// between them; its default is 5 minutes. Time in line for a limit, after a 429 too,
// does not count: no single wait for a limit is too long for WithTimeout.
// The Timeout of the http.Client given to [WithHTTPClient] bounds one attempt.
//
// # Observing calls
//
// [WithCallInfo] returns the facts of one call: attempts, waits, status, header,
// trace id. [WithLogger] and [WithObserver] report on all calls of a client.
// None of them sees a key, a text or a request body, but for [CallInfo].Body: it is the
// answer with its texts. [WithBeforeSend] asks a function
// before each request leaves, so that a program that is killed knows what may be in
// doubt.
//
// # Testing
//
// Package fakeserver is the whole service in memory: it keeps the documented
// rules and limits, and needs neither network nor key. Package
// agentmessagingtest makes one with a client on it, whose waits take no time.
//
//	client, fake := agentmessagingtest.New(t)
package agentmessaging
