package observe_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/observe"
)

// A service that was asked in January and again in February. Here it is a fake,
// whose clock Run moves instead of waiting.
func ExampleRun() {
	ask := func(opts ...fakeserver.Option) *observe.Observation {
		fake, err := fakeserver.Open(append(opts, fakeserver.WithUnknownRoutes())...)
		if err != nil {
			panic(err)
		}
		defer fake.Close()
		o, err := observe.Run(context.Background(), observe.Target{
			BaseURL: fake.BaseURL(), Key: fake.Key(), Abilities: fake, HTTPClient: &http.Client{Transport: fake.Direct()},
		}, observe.Spend{Requests: 490, Creations: 24, WarmUps: 8, Wait: 15 * time.Minute})
		if err != nil {
			fmt.Println(err)
		}
		return o
	}
	january, february := ask(), ask(fakeserver.WithDecision("clear_nothing", 404))
	for _, change := range february.Drift(january) {
		fmt.Println(change)
	}
	// Output: clear_nothing: Which status has DELETE /v1/byok with nothing stored? It was 200, it is 404.
}
