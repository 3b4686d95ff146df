package agentmessaging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// parseBaseURL refuses an address that could send a call, or the API key, to a place that
// the caller did not mean. Its errors never quote baseURL: it may hold a password or, if
// the arguments are swapped, the key.
func parseBaseURL(baseURL, apiKey string) (*url.URL, error) {
	refuse := func(reason string) (*url.URL, error) {
		return nil, &ValidationError{Field: "baseURL", Reason: reason}
	}
	u, err := url.Parse(baseURL)
	switch {
	case baseURL == "":
		return refuse("is empty; give the service's address, such as https://host.example")
	case strings.Contains(apiKey, "://") && !strings.Contains(baseURL, "://"):
		return refuse("and apiKey are the wrong way round: call NewClient(baseURL, apiKey)")
	case err != nil:
		return refuse("is not a URL: was it copied with a space, a line end or quotes? Give an address such as https://host.example")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return refuse("must be absolute: https:// and a host, or for loopback http://, such as http://127.0.0.1:8460")
	case u.User != nil:
		return refuse("must not hold a user or password; the API key is the credential")
	case u.RawQuery != "" || u.ForceQuery:
		return refuse("must not have a query")
	case strings.Contains(baseURL, "#"):
		return refuse("must not have a fragment")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return refuse("must be https: plain http would show the API key to the network (http is accepted for loopback hosts only)")
	case u.Port() != "" && !isPort(u.Port()):
		return refuse("must have a port from 1 to 65535, or none")
	case strings.ContainsFunc(baseURL, unicode.IsSpace) || strings.ContainsFunc(u.Path, unicode.IsControl):
		return refuse("must not have spaces or control characters; a space in a path is %20")
	case slices.ContainsFunc(spec.Slash.Split(u.EscapedPath(), -1), spec.DotSegment.MatchString):
		return refuse("must not have . or .. in its path")
	case len(apiKey) >= redact.MinSecret && strings.Contains(u.Path, apiKey): // a printed Client and observers show the address
		return refuse("must not hold the API key, which the client sends in a header")
	case strings.EqualFold(path.Base(u.Path), "v1"):
		return refuse("must not end in /v1, which the client adds; leave it out")
	case slices.ContainsFunc(spec.Endpoints[:], func(e *spec.Endpoint) bool { return strings.Contains(u.Path+"/", e.Path+"/") }):
		return refuse("must not have the path of an endpoint, which the client adds; leave out /v1 and what follows")
	}
	u.RawPath = strings.TrimRight(u.EscapedPath(), "/") // keeps the escapes: a trailing %2F is not a slash
	u.Path, _ = url.PathUnescape(u.RawPath)
	return u, nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// checkAPIKey accepts visible ASCII: a bearer token can hold nothing else.
func checkAPIKey(key string) error {
	refuse := func(reason string) error { return &ValidationError{Field: "apiKey", Reason: reason} }
	switch i := strings.IndexFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }); {
	case key == redact.Redacted:
		return refuse(reasonRedacted)
	case key == "":
		return refuse("is empty; issue one in the service's dashboard")
	case len(key) > 7 && strings.EqualFold(key[:7], "Bearer "):
		return refuse(`must be the key alone, without "Bearer "`)
	case len(key) > 1 && key[0] == key[len(key)-1] && strings.ContainsAny(key[:1], `"'`): // as some shells and .env files leave it
		return refuse("must be the key alone, without quotes")
	case strings.Contains(key, "://"):
		return refuse("is a URL; call NewClient(baseURL, apiKey)")
	case i >= 0:
		return refuse(fmt.Sprintf("has a byte that no header can hold, byte %d of %d "+
			"(a space, a line break or not ASCII); was it copied with a line end?", i+1, len(key)))
	}
	return nil
}

// reasonRedacted says why "[redacted]" is refused as a key. A Secret is encoded as this
// text, which would then be sent or stored in place of the real key.
const reasonRedacted = "is what a Secret is encoded as, not the key itself: keep string(secret) where the key is safe"

// checkAgentID refuses ids that could lead to another path behind some proxies, and an API
// key in place of an id: URLs, events and logs show ids.
func checkAgentID(id, apiKey string) error {
	reason := spec.AgentIDProblem(id)
	switch {
	case id == "":
		reason = "is empty; give Agent.ID"
	case len(apiKey) >= redact.MinSecret && strings.Contains(id, apiKey):
		reason = "holds the API key; give Agent.ID"
	case reason == "":
		return nil
	}
	return &ValidationError{Field: "agent_id", Reason: reason}
}

// checkField checks a value against the documented bounds of its field. An empty value
// counts as absent.
func checkField(field *spec.Field, value string) error {
	refuse := func(format string, args ...any) error {
		return &ValidationError{Field: field.Path, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case value == "" && field.Required && field.Enum != nil:
		return refuse("is required: one of %s", field.Values())
	case value == "" && field.Required:
		return refuse("is required")
	case value == "":
		return nil
	case !field.Allows(value):
		return refuse("must be one of %s", field.Values())
	case !utf8.ValidString(value):
		return refuse("must be valid UTF-8")
	case !field.Fits(value):
		return refuse("must be at most %d characters, has %d", field.MaxLen, utf8.RuneCountInString(value))
	}
	return nil
}

// checkProviderKey is checkField for a provider key. It also refuses an encoded Secret.
func checkProviderKey(field *spec.Field, key Secret) error {
	if key == redact.Redacted {
		return &ValidationError{Field: field.Path, Reason: reasonRedacted}
	}
	return checkField(field, string(key))
}

// encodeObject encodes a value that must be a JSON object. A nil, or a value that encodes
// as null, counts as absent.
func encodeObject(field *spec.Field, value any) (json.RawMessage, error) {
	refuse := func(reason string) (json.RawMessage, error) {
		return nil, &ValidationError{Field: field.Path, Reason: reason}
	}
	raw, err := strictjson.Encode(value)
	var foreign *json.UnsupportedTypeError
	switch {
	case errors.As(err, &foreign):
		return refuse("cannot be written as JSON: a " + foreign.Type.String() + " has no JSON form")
	case err != nil:
		return refuse(fmt.Sprintf("cannot be written as JSON: malformed JSON, a number that is not finite "+
			"or not a number, a value that holds itself, or a MarshalJSON that fails (%T)", err)) // only the type: the text may quote the value
	case bytes.Equal(raw, []byte("null")):
		return nil, nil
	case raw[0] != '{':
		return refuse("must be a JSON object")
	}
	if _, asWritten := value.(json.RawMessage); !asWritten && hasInvalidUTF8(value, raw) {
		return refuse(strictjson.ErrUTF8.Error())
	}
	switch err := strictjson.CheckMembers(raw); {
	case errors.As(err, new(strictjson.DuplicateError)):
		return refuse("must not have a member twice") // the text of err would quote the name
	case err != nil:
		return refuse(err.Error())
	}
	return raw, nil
}
