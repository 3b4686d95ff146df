package fakeserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Braces need an escape, but net/http's server accepts them without.
func TestPathsAreTakenAsTheyWereSent(t *testing.T) {
	fake, _ := newFake(t, fakeserver.WithUnknownRoutes())
	for path, want := range map[string]int{"/v1/agent%73/{a}": 404, "/v1/agents/{a}": 401, "/v1/agents/%7Ba%7D": 401} {
		w := httptest.NewRecorder()
		fake.ServeHTTP(w, httptest.NewRequest("GET", path, http.NoBody))
		assert.Equal(t, want, w.Code, path)
		calls := fake.Calls()
		assert.Equal(t, path, calls[len(calls)-1].Path)
	}
}
