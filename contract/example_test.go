package contract_test

import (
	"net/http"
	"testing"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// gateway takes the place of the proxy that you check.
func gateway(before http.RoundTripper) http.RoundTripper { return before }

// A proxy before a fake, held to every case. The fake arranges what the cases
// need; each case has its own proxy and fake.
func ExampleRun() {
	_ = func(t *testing.T) {
		contract.Run(t, contract.Target{Fresh: func(tb testing.TB) contract.Target {
			fake := fakeserver.New(tb)
			proxy := &http.Client{Transport: gateway(fake.Direct())}
			return contract.Target{BaseURL: fake.BaseURL(), Key: fake.Key(), HTTPClient: proxy, Abilities: fake, Decisions: true}
		}})
	}
}
