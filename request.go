package agentmessaging

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// request is what a method hands to do.
type request struct {
	endpoint *spec.Endpoint
	agentID  string
	invalid  error           // why the arguments are refused, if they are
	body     any             // encoded as JSON; nil sends no body
	metadata json.RawMessage // a further member of the body; nil: none
	setsBYOK bool            // spends the BYOK set limit (interface 8.1)
	// providerKey and words, which a person wrote, are what no error of this call
	// may show.
	providerKey, words string
	// createdID returns the id of the agent that a success has created; nil: it
	// creates none.
	createdID func(result any) string
}

// url returns where the request goes. An agent id is opaque but always exactly one
// path segment.
func (r *request) url(base *url.URL) (url.URL, error) {
	u := *base
	before, after, hasID := strings.Cut(r.endpoint.Path, "{agent_id}")
	if hasID {
		if err := checkAgentID(r.agentID); err != nil {
			return u, err
		}
	}
	if u.RawPath != "" { // a prefix whose escapes must stay as they are
		u.RawPath += before + url.PathEscape(r.agentID) + after
	}
	u.Path += before + r.agentID + after
	return u, nil
}

// encode returns the body as JSON; nil if there is none.
func (r *request) encode() ([]byte, error) {
	if r.body == nil {
		return nil, nil
	}
	body, err := encode(r.body)
	if err != nil {
		return nil, &ValidationError{Field: "body", Reason: "cannot be written as JSON"}
	}
	if r.metadata != nil {
		body = addMember(body, spec.Metadata.Path, r.metadata)
	}
	return body, nil
}
