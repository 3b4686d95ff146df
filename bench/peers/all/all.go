// Package all lists the peers.
package all

import (
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers/agentmessaging"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers/nethttp"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers/retryablehttp"
)

// Peers are all of them, the floor first.
var Peers = []peers.Peer{
	nethttp.Peer,
	retryablehttp.Peer,
	agentmessaging.Peer,
}
