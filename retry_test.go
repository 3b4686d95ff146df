package agentmessaging_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

func TestRetryAfterOfAnError(t *testing.T) {
	for err, want := range map[error]time.Duration{
		nil: 0, io.EOF: 0,
		&agentmessaging.Error{}:                                                        0,
		&agentmessaging.Error{RetryAfter: 3 * time.Second}:                             3 * time.Second,
		&agentmessaging.ValidationError{}:                                              0,
		fmt.Errorf("x: %w", &agentmessaging.Error{RetryAfter: 1}):                      1,
		&agentmessaging.OutcomeUnknownError{Err: &agentmessaging.Error{RetryAfter: 2}}: 2,
	} {
		wait, ok := agentmessaging.RetryAfter(err)
		assert.Equal(t, want, wait, "%#v", err)
		assert.Equal(t, want > 0, ok, "%#v", err)
	}
}

// TestOutageSpendsLittle: of 300 calls at once that meet 502, few are repeated, and the
// error says why not: ten, and one for each five calls that have succeeded. A caller on
// its own retries as ever; siblings share the budget.
func TestOutageSpendsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests, withheld atomic.Int32
		service := answering(append(slices.Repeat([]answer{okAnswer}, 100), answer{Status: http.StatusBadGateway})...)
		client := newClient(t, tripper(func(req *http.Request) (*http.Response, error) {
			requests.Add(1)
			return service.RoundTrip(req)
		}), jitter(0))
		sibling, err := client.With(agentmessaging.WithTimeout(time.Minute))
		require.NoError(t, err)
		for range 100 {
			require.NoError(t, get(t.Context(), client))
		}
		requests.Store(0)
		var group sync.WaitGroup
		for i := range 300 {
			group.Go(func() {
				err := get(t.Context(), []*agentmessaging.Client{client, sibling}[i%2])
				if strings.Contains(err.Error(), "not retried, since too many calls fail") {
					withheld.Add(1)
				}
			})
		}
		group.Wait()
		assert.GreaterOrEqual(t, requests.Load(), int32(300+10+20))
		assert.Less(t, requests.Load(), int32(300+10+20+5), "two a second come back")
		assert.Greater(t, withheld.Load(), int32(265))
		time.Sleep(5 * time.Second)
		for range 20 {
			requests.Store(0)
			_ = get(t.Context(), client)
			assert.EqualValues(t, 3, requests.Load(), "of a lone caller")
		}
	})
}
