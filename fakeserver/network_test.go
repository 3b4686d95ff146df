package fakeserver_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// The bubble's channels are not touched by a Close outside.
func TestCloseOutsideTheBubbleOfAClient(t *testing.T) {
	fake := fakeserver.New(t)
	next, closed := make(chan bool), make(chan bool)
	go func() {
		<-next
		_ = fake.Close()
		close(closed)
	}()
	synctest.Test(t, func(t *testing.T) {
		c := caller{t, fake.HTTPClient(t).Transport, fake.Key()}
		c.call("GET", "/v1/status", noBody).wantOK(t)
		close(next)
		<-closed
		_, err := c.wire.RoundTrip(c.request("GET", "/v1/status", noBody)) //nolint:bodyclose // there is none
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

// Close in a callback would wait for the call that it is part of.
func TestCloseInsideACallback(t *testing.T) {
	ways := map[string]func(*fakeserver.Server) http.RoundTripper{
		"HTTPClient(nil)": func(s *fakeserver.Server) http.RoundTripper { return s.HTTPClient(nil).Transport },
		"HTTPClient(t)":   func(s *fakeserver.Server) http.RoundTripper { return s.HTTPClient(t).Transport },
		"Direct":          func(s *fakeserver.Server) http.RoundTripper { return s.Direct() },
	}
	for name, way := range ways {
		var returned atomic.Bool
		fake, err := fakeserver.Open()
		require.NoError(t, err)
		c := caller{t, way(fake), fake.Key()}
		agent := c.agent(emptyBody)
		fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply {
			_ = fake.Close()
			returned.Store(true)
			return fakeserver.Reply{Text: "closed"}
		})
		resp, err := c.wire.RoundTrip(c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`))
		eventually(t, returned.Load)
		if name == "HTTPClient(nil)" {
			require.Error(t, err, "Close ends its connections")
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, "closed", read(t, resp).text("reply_text"), name)
	}
}

// The cleanup of a client waits for what is under way, and says for what.
func TestHangingUpSaysWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t)
		fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply {
			time.Sleep(6 * time.Second)
			return fakeserver.Reply{}
		})
		for wait, want := range map[time.Duration]string{
			0:               "POST /v1/agents/{agent_id}/messages",
			2 * time.Second: "", // 4 s are left, which is nothing to speak of
		} {
			watch := new(spy)
			c := caller{t, fake.HTTPClient(watch).Transport, fake.Key()}
			agent := c.agent(emptyBody)
			ended := make(chan error)
			go func() {
				_, err := c.wire.RoundTrip(c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`)) //nolint:bodyclose // there is none
				ended <- err
			}()
			synctest.Wait()
			time.Sleep(wait)
			watch.finish()
			require.Error(t, <-ended)
			assert.Equal(t, want != "", len(watch.logs) == 1)
			assert.Contains(t, strings.Join(watch.logs, "\n"), want)
		}
	})
}
