package all_test

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/all"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

const memory = "https://service.example"

// sent is a request as it came to the transport.
type sent struct {
	*http.Request
	body string
}

// record is a transport that keeps what was sent through it.
type record struct {
	to  http.RoundTripper
	all []sent
}

func (r *record) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		r.all = append(r.all, sent{req, ""})
		return r.to.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.all = append(r.all, sent{req, string(body)})
	again := req.Clone(req.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	return r.to.RoundTrip(again)
}

type markKey struct{}

// run makes both calls and returns what they sent, one request each.
func run(t *testing.T, peer peers.Peer, to http.RoundTripper, baseURL string) (post, get sent) {
	t.Helper()
	r := &record{to: to}
	calls, err := peer.New(r, baseURL)
	require.NoError(t, err)
	ctx := context.WithValue(t.Context(), markKey{}, "mark")
	require.NoError(t, calls.Post(ctx))
	require.Len(t, r.all, 1, "requests of the POST through the transport that was given")
	require.NoError(t, calls.Get(ctx))
	require.Len(t, r.all, 2, "requests of both calls through the transport that was given")
	return r.all[0], r.all[1]
}

// wantRequest: what was sent is the call's, with its key and context.
func wantRequest(t *testing.T, req sent, baseURL string) {
	t.Helper()
	assert.Equal(t, baseURL, req.URL.Scheme+"://"+req.URL.Host)
	assert.Equal(t, "mark", req.Context().Value(markKey{}), "the call's context does not reach the request")
	var head bytes.Buffer
	require.NoError(t, req.Header.Write(&head))
	assert.Regexp(t, peers.Key+"|"+service.Key, head.String()+req.body, "the request has no key")
}

func TestPeers(t *testing.T) {
	for _, peer := range all.Peers {
		t.Run(peer.Subject(), func(t *testing.T) {
			canned := peers.Canned(peer.Answers)
			server := httptest.NewServer(canned)
			t.Cleanup(server.Close)
			for baseURL, to := range map[string]http.RoundTripper{memory: canned, server.URL: server.Client().Transport} {
				post, get := run(t, peer, to, baseURL)
				wantRequest(t, post, baseURL)
				wantRequest(t, get, baseURL)
				text, err := url.QueryUnescape(post.body) // some are forms
				require.NoError(t, err)
				assert.Contains(t, text, service.Text)
			}
		})
	}
}

// TestUndecoded: a call that does not look at the answer is no measure.
func TestUndecoded(t *testing.T) {
	for _, peer := range all.Peers {
		t.Run(peer.Subject(), func(t *testing.T) {
			empty := maps.Clone(peer.Answers)
			for path := range empty {
				empty[path] = "{}"
			}
			calls, err := peer.New(peers.Canned(empty), memory)
			require.NoError(t, err)
			assert.Error(t, calls.Post(t.Context()), "a POST that is answered with {}")
			assert.Error(t, calls.Get(t.Context()), "a GET that is answered with {}")
		})
	}
}

// TestEnvironment: it changes no request.
func TestEnvironment(t *testing.T) {
	hostile := map[string]string{
		"OPENAI_BASE_URL": "http://127.0.0.1:1", "OPENAI_API_KEY": "other", "OPENAI_ORG_ID": "other", "OPENAI_CUSTOM_HEADERS": "X-Other: 1",
		"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "ANTHROPIC_AUTH_TOKEN": "other", "ANTHROPIC_CUSTOM_HEADERS": "X-Other: 1",
		"VAULT_ADDR": "http://127.0.0.1:1", "VAULT_TOKEN": "other", "VAULT_NAMESPACE": "other", "VAULT_WRAP_TTL": "5m",
		"RESEND_BASE_URL": "http://127.0.0.1:1",
	}
	for _, peer := range all.Peers {
		t.Run(peer.Subject(), func(t *testing.T) {
			post, get := run(t, peer, peers.Canned(peer.Answers), memory)
			for name, value := range hostile {
				t.Setenv(name, value)
			}
			hostilePost, hostileGet := run(t, peer, peers.Canned(peer.Answers), memory)
			assert.Equal(t, names(post.Header), names(hostilePost.Header))
			assert.Equal(t, names(get.Header), names(hostileGet.Header))
			wantRequest(t, hostilePost, memory)
			wantRequest(t, hostileGet, memory)
		})
	}
}

func names(header http.Header) []string { return slices.Sorted(maps.Keys(header)) }

// TestModules: go.mod requires the module that each peer names, and the floor
// needs none.
func TestModules(t *testing.T) {
	file := filepath.Join("..", "..", "go.mod")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	mod, err := modfile.Parse(file, content, nil)
	require.NoError(t, err)
	var required []string
	for _, r := range mod.Require {
		required = append(required, r.Mod.Path)
	}
	assert.Empty(t, all.Peers[0].Module, "the floor has no module")
	for _, peer := range all.Peers[1:] {
		assert.Contains(t, required, peer.Module)
	}
}

// TestSubjects: each has its own, in one word of a benchmark's name.
func TestSubjects(t *testing.T) {
	seen := map[string]bool{}
	for _, peer := range all.Peers {
		assert.Regexp(t, `^[a-z0-9-]+$`, peer.Subject())
		assert.False(t, seen[peer.Subject()], "%s twice", peer.Subject())
		seen[peer.Subject()] = true
	}
}
