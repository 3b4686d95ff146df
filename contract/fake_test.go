package contract_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// TestFake runs every case, each on a fake of its own inside a bubble, where
// waiting is free and exact.
func TestFake(t *testing.T) {
	seen := newSightings()
	var budget contract.Spend // no bound
	if testing.Short() {
		budget = minutes
	}
	t.Run("cases", func(t *testing.T) {
		contract.Run(t, contract.Target{Bubble: true, Budget: budget, Fresh: func(tb testing.TB) contract.Target {
			fake := fakeserver.New(tb, fakeserver.WithUnknownRoutes())
			target := targetOf(fake)
			target.HTTPClient = func(tb testing.TB) *http.Client { return seen.through(fake.HTTPClient(tb)) }
			return target
		}})
	})
	if flag.Lookup("test.run").Value.String() == "" { // a part of the cases shows a part of the statuses
		seen.wantEveryStatus(t)
	}
}

// minutes leaves the cases out that take thousands of calls; TestFake has them.
var minutes = contract.Spend{Requests: 1500, Creations: 60, BYOKSets: 10, WarmUps: 10}

// TestFakeAdvance runs the cases outside a bubble, on the clock that the
// fake's Advance moves.
func TestFakeAdvance(t *testing.T) {
	contract.Run(t, contract.Target{Budget: minutes, Fresh: func(tb testing.TB) contract.Target {
		fake := fakeserver.New(tb, fakeserver.WithUnknownRoutes())
		target := targetOf(fake)
		target.Abilities.Advance = fake.Advance
		return target
	}})
}

// TestFakeDirect runs them without a connection in between.
func TestFakeDirect(t *testing.T) {
	contract.Run(t, contract.Target{Bubble: true, Budget: minutes, Fresh: func(tb testing.TB) contract.Target {
		fake := fakeserver.New(tb, fakeserver.WithUnknownRoutes())
		target := targetOf(fake)
		target.HTTPClient = func(testing.TB) *http.Client { return &http.Client{Transport: fake.Direct()} }
		return target
	}})
}

// TestFakeSocket runs what a caller over a socket can check.
func TestFakeSocket(t *testing.T) {
	contract.Run(t, contract.Target{Budget: minutes, Fresh: func(tb testing.TB) contract.Target {
		fake := fakeserver.New(tb, fakeserver.WithUnknownRoutes())
		server := httptest.NewServer(fake)
		tb.Cleanup(server.Close)
		target := targetOf(fake)
		target.BaseURL = server.URL
		target.HTTPClient = func(testing.TB) *http.Client { return server.Client() }
		target.Abilities.Advance = fake.Advance
		target.Abilities.ClientFrom, target.Abilities.BulkClient = nil, nil
		return target
	}})
}

// TestFakeShared runs the cases as a live service would have them: one after
// the other on one target, within the default budget.
func TestFakeShared(t *testing.T) {
	fake := fakeserver.New(t, fakeserver.WithUnknownRoutes())
	contract.Run(t, contract.Target{BaseURL: fake.BaseURL(), Key: fake.Key(), HTTPClient: clientOf(fake)})
}

// targetOf is the fake with all its abilities but a clock to move: in a bubble
// waits are slept.
func targetOf(fake *fakeserver.Server) contract.Target {
	return contract.Target{
		BaseURL:    fake.BaseURL(),
		HTTPClient: clientOf(fake),
		Key:        fake.Key(),
		Abilities: contract.Abilities{
			IssueKey: func(plan string, dashboard bool) string {
				return fake.IssueKey(fakeserver.KeyOptions{Plan: fakeserver.Plan(plan), NotDashboard: !dashboard})
			},
			RevokeKey:        fake.RevokeKey,
			SetBYOKAvailable: fake.SetBYOKAvailable,
			ClientFrom: func(tb testing.TB, ip string) *http.Client {
				return fake.HTTPClient(tb, fakeserver.FromIP(ip))
			},
			// Fifty thousand calls to fill a day: the connection is checked elsewhere.
			BulkClient: func(testing.TB) *http.Client { return &http.Client{Transport: fake.Direct()} },
			Decisions:  true,
		},
	}
}

func clientOf(fake *fakeserver.Server) func(testing.TB) *http.Client {
	return func(tb testing.TB) *http.Client {
		client := fake.HTTPClient(tb)
		client.Timeout = time.Minute
		return client
	}
}
