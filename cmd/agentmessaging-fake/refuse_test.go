package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRefusedConnections: as where no program listens, and not for ever.
func TestRefusedConnections(t *testing.T) {
	p, err := start(&config{addr: "127.0.0.1:0", log: "off"}, io.Discard)
	require.NoError(t, err)
	r := &running{t: t, facts: p.facts}
	served, idle := make(chan error, 1), make(chan bool, 10)
	p.server.ConnState = func(_ net.Conn, now http.ConnState) {
		if now == http.StateIdle {
			idle <- true
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { served <- p.accept(ctx) }()
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
	status, _ := r.call("POST", "/_fake/v1/refuse", `{"duration":"1ms"}`)
	assert.Equal(t, 204, status)
	for ask() != nil { // until the time is over
		continue
	}
	<-idle // the connection of the refusal
	<-idle // and this one
	status, _ = r.call("POST", "/_fake/v1/refuse", `{"duration":"1h"}`)
	assert.Equal(t, 204, status)
	_, err = net.Dial("tcp", strings.TrimPrefix(p.facts.BaseURL, "http://"))
	require.ErrorContains(t, err, "refused")
	require.ErrorContains(t, ask(), "refused", "a connection that waited was closed")
	assert.ErrorIs(t, p.refuse(1), errShut)
	require.NoError(t, p.stop(), "it ends while it is shut")
	cancel()
	assert.NoError(t, <-served)
}
