package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRefusedConnections: as where no program listens, and not for ever.
func TestRefusedConnections(t *testing.T) {
	p, err := start(&config{addr: "127.0.0.1:0"})
	require.NoError(t, err)
	r := &running{t: t, facts: p.facts}
	served, idle := make(chan error, 1), make(chan bool, 10)
	p.server.ConnState = func(_ net.Conn, now http.ConnState) {
		if now == http.StateIdle {
			idle <- true
		}
	}
	go func() { served <- p.server.Serve(p.listener) }()
	kept := &http.Transport{}
	ask := func() error {
		resp, err := kept.RoundTrip(httptest.NewRequest("GET", p.facts.BaseURL+"/healthz", nil))
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		return err
	}
	require.NoError(t, ask())
	<-idle
	status, _ := r.call("POST", "/_fake/v1/refuse", `{"duration":"1h"}`)
	assert.Equal(t, 204, status)
	dial := func() error {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.facts.BaseURL, "http://"))
		return errors.Join(err, closed(conn))
	}
	require.ErrorContains(t, dial(), "refused")
	require.ErrorContains(t, ask(), "refused", "a connection that waited was closed")
	assert.ErrorIs(t, p.listener.shut(time.Hour), errShut)
	p.listener.open()
	require.NoError(t, dial())
	status, _ = r.service("GET", "/v1/status", "")
	assert.Equal(t, 200, status)
	require.NoError(t, p.listener.shut(time.Hour))
	require.NoError(t, p.stop(), "it ends while it is shut")
	assert.Error(t, <-served)
	p.listener.open()
	assert.ErrorContains(t, dial(), "refused", "and stays ended")
}

func closed(conn net.Conn) error {
	if conn == nil {
		return nil
	}
	return conn.Close()
}
