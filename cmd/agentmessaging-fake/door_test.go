package main

import (
	"errors"
	"net"
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
	served := make(chan error, 1)
	go func() { served <- p.server.Serve(p.listener) }()
	status, _ := r.call("POST", "/_fake/v1/refuse", `{"duration":"1h"}`)
	assert.Equal(t, 204, status)
	dial := func() error {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.facts.BaseURL, "http://"))
		return errors.Join(err, closed(conn))
	}
	require.ErrorContains(t, dial(), "refused")
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
