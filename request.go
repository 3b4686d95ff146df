package agentmessaging

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// request holds what all attempts of a call share.
type request struct {
	// The arguments that a method passes to do.
	endpoint *spec.Endpoint
	agentID  string // empty if the endpoint's path has none
	invalid  error  // why the method refuses its arguments; nil: they are valid
	body     any    // encoded as JSON; nil sends no body
	setsBYOK bool   // spends a BYOK set (interface 8.1), whatever the endpoint spends
	// providerKey and userText are secrets: no error of this call shows them. userText is the
	// text that a person wrote, a system prompt or a message.
	providerKey, userText string

	// Set by newCall. Once the first attempt has begun, only two fields change: waiter, and
	// secrets, which prepares userText at its first use.
	client     *Client
	readResult func(*answerBody) // keeps the result of a success
	ctx        context.Context   // the caller's context, or one that an observer returned
	url        url.URL
	payload    []byte                           // body, encoded
	secrets    redact.Redactor                  // hides the API key, providerKey and userText
	beforeSend func(context.Context, int) error // see WithBeforeSend; nil: none
	waiter     quota.Waiter                     // the call's place in the engine
}

// address returns the request's address at a client. An agent id is opaque, but always
// exactly one path segment.
func (r *request) address(c *Client) (url.URL, error) {
	u := *c.base
	before, after, hasID := strings.Cut(r.endpoint.Path, "{agent_id}")
	if hasID {
		if err := checkAgentID(r.agentID, c.apiKey()); err != nil {
			return u, err
		}
	}
	// RawPath keeps the escapes of the base address and of PathEscape. Without RawPath,
	// net/url would not escape ; and , and some proxies drop the text after one of these.
	if escaped := url.PathEscape(r.agentID); u.RawPath != "" || escaped != r.agentID {
		u.RawPath = u.EscapedPath() + before + escaped + after
	}
	u.Path += before + r.agentID + after
	return u, nil
}

// progress is the state that one attempt of a call hands on to the next.
type progress struct {
	*request
	subject Subject // for observers; the attempt that creates an agent adds its ID

	// engine makes the call wait for limits. It is the client's engine. Under
	// WithoutCoolDown it is nil until the first 429, and then an engine that no other call
	// uses.
	engine *quota.Engine

	lastRefusal *Error        // the 429 that answered the last sent attempt; nil: another answer, or none
	timeLeft    time.Duration // of WithTimeout, for attempts and pauses

	attempts, renewals, refusals int           // as in CallInfo
	waited                       time.Duration // for limits and between attempts
}

// failures returns how many attempts count against MaxAttempts. A 429 does not count, nor
// does an attempt that is repeated on a new connection.
func (p *progress) failures() int { return p.attempts - p.renewals - p.refusals }
