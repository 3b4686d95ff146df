package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// documented are the statuses of interface 4, endpoint by endpoint.
var documented = map[string][]int{
	"GET /v1/status":                          {200, 401, 402, 404},
	"POST /v1/warmup":                         {200, 400, 401, 402, 403, 409, 429, 503},
	"GET /v1/byok":                            {200, 401, 402, 403, 404},
	"PUT /v1/byok":                            {200, 400, 401, 402, 403, 429, 503},
	"DELETE /v1/byok":                         {200, 401, 402, 403, 404},
	"POST /v1/agents":                         {200, 400, 401, 402, 404, 429},
	"GET /v1/agents/{agent_id}":               {200, 401, 402, 404, 429},
	"POST /v1/agents/{agent_id}/messages":     {200, 400, 401, 402, 404, 429},
	"POST /v1/agents/{agent_id}/channels/sms": {200, 400, 401, 402, 404, 429},
}

// cannotBeProvoked are the statuses that no call is known to bring about.
var cannotBeProvoked = map[string]string{
	"GET /v1/status 404":  "the path names nothing that could be missing",
	"GET /v1/byok 404":    "where none is set the answer is 200 with null (4.3)",
	"DELETE /v1/byok 404": "where none is set the answer is 200: decided, the interface is silent",
	"POST /v1/agents 404": "the path and the body name nothing that could be missing",
}

// sightings collects which endpoint answered which status.
type sightings struct {
	mu   sync.Mutex
	seen map[string]bool
}

func newSightings() *sightings { return &sightings{seen: map[string]bool{}} }

// through is the transport with the sightings on its way.
func (s *sightings) through(next http.RoundTripper) http.RoundTripper {
	return sightedTransport{next, s}
}

type sightedTransport struct {
	next http.RoundTripper
	to   *sightings
}

func (t sightedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if err == nil {
		t.to.add(req.Method, req.URL.Path, res.StatusCode)
	}
	return res, err
}

func (s *sightings) add(method, path string, status int) {
	if parts := strings.Split(path, "/"); len(parts) > 3 && parts[2] == "agents" {
		parts[3] = "{agent_id}"
		path = strings.Join(parts, "/")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[fmt.Sprint(method, " ", path, " ", status)] = true
}

// wantEveryStatus wants each documented status seen or explained, and no
// endpoint to have answered another.
func (s *sightings) wantEveryStatus(t *testing.T) {
	listed := map[string]bool{}
	for endpoint, statuses := range documented {
		for _, status := range statuses {
			name := fmt.Sprint(endpoint, " ", status)
			listed[name] = true
			assert.NotEqual(t, s.seen[name], cannotBeProvoked[name] != "", "%s: provoked or explained, not both", name)
		}
	}
	for name := range s.seen {
		endpoint := name[:strings.LastIndexByte(name, ' ')]
		if documented[endpoint] != nil {
			assert.True(t, listed[name], "%s is not documented", name)
		}
	}
}
