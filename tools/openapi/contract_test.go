package openapi_test

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// TestContract runs the whole contract suite on the fake.
func TestContract(t *testing.T) {
	r := newRecord(t, document(t))
	r.loose = true // four cases are about just that
	t.Run("cases", func(t *testing.T) {
		contract.Run(t, contract.Target{Bubble: true, Fresh: func(tb testing.TB) contract.Target {
			return r.target(tb, fakeserver.New(tb, fakeserver.WithUnknownRoutes()))
		}})
	})
	for _, sentence := range r.wrong {
		t.Error(sentence)
	}
	t.Logf("%d exchanges held against openapi.yaml", r.judged)
	if flag.Lookup("test.run").Value.String() == "" { // a part of the cases shows a part of this
		r.injectUnprovoked(t)
		r.wantEveryStatus(t)
	}
}

// target is the fake with the record before its clients, but where a case fills
// the limit of a day.
func (r *record) target(tb testing.TB, fake *fakeserver.Server) contract.Target {
	client := r.through(tb, fake.HTTPClient(tb))
	if strings.HasSuffix(tb.Name(), "key_day") {
		client = &http.Client{Transport: fake.Direct()}
	}
	return contract.Target{
		BaseURL: fake.BaseURL(), Key: fake.Key(), Abilities: fake, Decisions: true,
		HTTPClient: client,
		ClientFrom: func(ip string) *http.Client { return r.through(tb, fake.HTTPClient(tb, fakeserver.FromIP(ip))) },
	}
}

// unprovoked are the operations that list 404 though no call to the fake is
// known to bring it about: interface 4 does not say when. The fake is told to.
var unprovoked = map[string]fakeserver.Endpoint{
	"Status":      fakeserver.EndpointStatus,
	"GetBYOK":     fakeserver.EndpointGetBYOK,
	"ClearBYOK":   fakeserver.EndpointClearBYOK,
	"CreateAgent": fakeserver.EndpointCreateAgent,
}

func (r *record) injectUnprovoked(t *testing.T) {
	fake := fakeserver.New(t)
	client := r.through(t, fake.HTTPClient(t))
	for name, endpoint := range unprovoked {
		assert.False(t, r.seen[name+" 404"], "%s 404 was provoked after all", name)
		fake.Inject(fakeserver.Answer(404, ""), fakeserver.ByEndpoint(endpoint)).Required()
		method, path, _ := strings.Cut(string(endpoint), " ")
		req, err := http.NewRequestWithContext(t.Context(), method, fake.BaseURL()+path, strings.NewReader("{}"))
		require.NoError(t, err)
		res, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
	}
}

// wantEveryStatus wants every operation of the document to have answered every
// status that it lists.
func (r *record) wantEveryStatus(t *testing.T) {
	pairs := 0
	for _, op := range operations(document(t)) {
		for status := range op.Responses.Map() {
			pairs++
			assert.True(t, r.seen[fmt.Sprint(op.OperationID, " ", status)], "%s never answered %s", op.OperationID, status)
		}
	}
	assert.Len(t, r.seen, pairs)
	t.Logf("%d pairs of operation and status, each seen", pairs)
}
