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
// life of the program. Its methods are the endpoints: Status, WarmUp, GetBYOK, SetBYOK,
// ClearBYOK, CreateAgent, GetAgent, SendMessage and EnableSMS. The examples make their
// calls on a fake of the service. The module also has these packages:
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
//     out what a service does where its documentation is silent.
//
// Two packages have more dependencies, so each is a separate module: redisstore lets a
// Pacer share its limits through Redis, and otelagentmessaging reports calls to
// OpenTelemetry.
//
// "Interface 4.6" in these pages names a section of the service's interface
// document. The service is in preview; its limits may change.
//
// # Errors
//
// Every method returns one of three error types:
//
//   - [*ValidationError]: the arguments break a documented bound. Nothing was sent.
//   - [*OutcomeUnknownError]: a POST may have been carried out. Its answer was lost, or
//     is a 5xx that the interface does not list for it.
//   - [*Error]: every other failure. The answer is not a documented success, or none
//     came, or a limit or the context stopped the call before it was sent.
//
// Find out what happened with errors.Is and a kind such as [ErrRateLimited], and read the
// details with errors.As. Each method lists the kinds that the interface documents for it.
// Any call may also fail with [ErrServer], with another answer of a proxy, without an
// answer, or because its context ended. docs/errors.md of this module says what to do about
// each.
//
// # Retries
//
// A call makes up to three attempts ([RetryPolicy]). A 429 does not count. Nor does
// an attempt that is made at once on a new HTTP/2 connection because the old one
// was closing and did not take the request; a call has at most two of these
// ([CallInfo].Renewals). What happens after an attempt depends on how it ended and
// on whether a repeat is harmless:
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
// 599, which HTTP does not define, counts as "another 5xx", but is not [ErrServer].
// "Refused by the limiter" means that the cool-down, a Pacer, a [Limiter] or the function of
// [WithBeforeSend] refused the attempt, or that the context ended while the attempt waited
// there. Nothing was sent.
//
// A wait is never shorter than the answer's Retry-After; jitter makes it longer. A
// Retry-After of more than a day counts as a day. If the Retry-After of a 429 is 0,
// missing or unreadable, the wait is at least 1 s. If a wait would pass the context's deadline or
// [RetryPolicy].MaxWait, the call does not wait: it returns the error at once, with
// RetryAfter set if the answer had one.
//
// Each attempt spends quota unless a 429 refuses it, except those of Status, GetBYOK and
// ClearBYOK (as we understand interface 4 and 8). So a client, and all clients that With
// makes of it, share a retry budget. Five calls that succeed pay for one retry, and up to
// 100 such retries are saved. Besides, two retries a second are free, of which up to ten are
// saved. If the budget is empty, the call is not retried, and its error says so. A retry after
// a 429 draws nothing from the budget. Nor does a retry of an attempt that was never sent, for
// example because the connection was refused.
//
// # Limits
//
// A 429 is not a failure: the service has done nothing, and says when to come back. It
// never counts against [RetryPolicy].MaxAttempts. After a 429 comes the cool-down:
//
//   - The refused call, and all other calls to its endpoint, wait until Retry-After has
//     passed (interface 8.3). Then they go in turn, at the pace of the limit once the
//     client has learned it. A call keeps waiting as long as others get through its limit.
//   - If a creation with a provider key was refused, creations without one go on, because
//     the refused one may have met the limit on BYOK sets.
//   - While nobody gets through, the client tries less and less often. After an upgrade of
//     the plan, make a new client: it does not wait for the old limit.
//   - Other endpoints whose last 429 had the same limit_key wait too. But two limits may have
//     the same name. So an endpoint that was not refused itself this time sends one call after
//     a second. If the service accepts it, the endpoint's calls go on. Until then they wait or
//     fail like the others. Without a limit_key, the client treats each endpoint as a separate
//     limit.
//
// A call fails with the 429
//
//   - at once, if its next attempt would come after its deadline or [RetryPolicy].MaxWait,
//     because of Retry-After or because the client asks less and less often,
//   - at its deadline, if the deadline passes while the call is in line,
//   - when the service refuses it again, and nobody has got through for the time of
//     [WithTimeout],
//   - if MaxAttempts is 1, which retries nothing. The call still waits in line before it is sent.
//
// The error has RetryAfter set, unless the deadline passed in line, or MaxAttempts is 1 and
// the answer named no wait. It has [Error].Local set if the last attempt was not sent.
//
// With [WithoutCoolDown] each refused call waits alone. [WithLimiter] adds a [Limiter]
// that the client asks after the cool-down. A Pacer of package pacer takes the place of
// the cool-down: it holds calls back before the service refuses them, for one process or
// for all that share a key.
//
// # Time
//
// The deadline of the context bounds a call, its attempts and waits together.
// If the context has none, [WithTimeout] bounds the attempts and the waits between
// them; its default is 5 minutes. The time in line for a limit does not count, not even
// after a 429: for such a wait only the deadline and [RetryPolicy].MaxWait matter.
// The Timeout of the http.Client given to [WithHTTPClient] bounds one attempt.
//
// # Observing calls
//
// [WithCallInfo] returns the facts of one call: attempts, waits, status, header,
// trace id. [WithLogger] and [WithObserver] report on all calls of a client.
// None of them shows a key, a text or a request body, except that [CallInfo].Body is the
// answer with its texts. [WithBeforeSend] calls a function before each request leaves,
// so that a program that is killed knows afterwards which calls are in doubt.
//
// # Testing
//
// Package fakeserver is the whole service in memory: it keeps the documented rules and
// limits, and needs neither network nor key. Package agentmessagingtest makes a fake, and a
// client of it whose waits take no time.
//
//	client, fake := agentmessagingtest.New(t)
package agentmessaging
