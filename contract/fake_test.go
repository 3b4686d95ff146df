package contract_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// TestFake runs every case, each on a fake of its own inside a bubble, where
// waiting is free and exact, and without a connection in between: a day's
// calls take milliseconds.
func TestFake(t *testing.T) {
	var budget contract.Spend // no bound
	if testing.Short() {
		budget = contract.Spend{Requests: 1500, Creations: 60, BYOKSets: 10, WarmUps: 10}
	}
	contract.Run(t, contract.Target{Bubble: true, Budget: budget, Fresh: func(tb testing.TB) contract.Target {
		fake := newFake(tb, fakeserver.WithUnknownRoutes())
		return targetOf(fake, func(ip string) http.RoundTripper { return fake.Direct(from(ip)...) })
	}})
}

// TestFakeTransports runs one case of each endpoint on the other ways to the
// fake: over the connection in memory, over a socket, and with Advance in
// place of a bubble.
func TestFakeTransports(t *testing.T) {
	for name, target := range map[string]contract.Target{
		"wire": {Bubble: true, Fresh: func(tb testing.TB) contract.Target {
			fake := newFake(tb)
			return targetOf(fake, func(ip string) http.RoundTripper { return fake.HTTPClient(tb, from(ip)...).Transport })
		}},
		"advance": {Fresh: func(tb testing.TB) contract.Target {
			fake := newFake(tb)
			return targetOf(fake, func(ip string) http.RoundTripper { return fake.HTTPClient(tb, from(ip)...).Transport })
		}},
		"socket": {Fresh: func(tb testing.TB) contract.Target {
			fake := newFake(tb)
			server := httptest.NewServer(fake)
			tb.Cleanup(server.Close)
			return contract.Target{BaseURL: server.URL, Key: fake.Key(), Abilities: fake, Decisions: true}
		}},
	} {
		t.Run(name, func(t *testing.T) { contract.RunCases(t, samples(t), target) })
	}
}

// samples are one case of each endpoint, one that waits, and one that sends
// more than a service reads.
func samples(t *testing.T) []contract.Case {
	ids := []string{
		"4.1/shape", "4.2/body-absent", "4.4/set-read-clear", "4.6/empty-object", "4.7/read", "4.8/reply", "4.9/mode/managed",
		"fake/created-at", "fake/body/create-agent/over-1-MiB",
	}
	cases := slices.DeleteFunc(contract.AllCases(), func(c contract.Case) bool { return !slices.Contains(ids, c.ID) })
	if len(cases) != len(ids) {
		t.Fatalf("%d of %d samples", len(cases), len(ids))
	}
	return cases
}

// TestFakeShared runs the cases as a live service would have them: one after
// the other on one target, within the default budget.
func TestFakeShared(t *testing.T) {
	fake := newFake(t, fakeserver.WithUnknownRoutes())
	contract.Run(t, contract.Target{BaseURL: fake.BaseURL(), Key: fake.Key(), HTTPClient: &http.Client{Transport: fake.Direct()}})
}

// targetOf is the fake with all its abilities, reached by the transport of an
// address.
func targetOf(fake *fakeserver.Server, transport func(ip string) http.RoundTripper) contract.Target {
	client := func(ip string) *http.Client { return &http.Client{Transport: transport(ip)} }
	return contract.Target{
		BaseURL: fake.BaseURL(), Key: fake.Key(), HTTPClient: client(""), ClientFrom: client, Abilities: fake, Decisions: true,
		// Fifty thousand calls to fill a day: the connection is checked elsewhere.
		BulkClient: &http.Client{Transport: fake.Direct()},
	}
}

func from(ip string) []fakeserver.FromIP {
	if ip == "" {
		return nil
	}
	return []fakeserver.FromIP{fakeserver.FromIP(ip)}
}

// newFake makes a fake that does not list its calls when a case fails: the
// case shows the one that matters.
func newFake(tb testing.TB, opts ...fakeserver.Option) *fakeserver.Server {
	return fakeserver.New(quiet{tb}, opts...)
}

type quiet struct{ testing.TB }

func (quiet) Failed() bool { return false }
