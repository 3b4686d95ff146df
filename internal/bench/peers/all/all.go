// Package all lists the peers. A client that ogen generates of openapi.yaml is
// not compared.
package all

import (
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/agentmessaging"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/anthropic"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/github"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/nethttp"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/oapicodegen"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/openai"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/resend"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/retryablehttp"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/slack"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/stripe"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/vault"
)

// Peers are all of them: the floor, what the SDK is built on, the SDK, and the
// others by name.
var Peers = []peers.Peer{
	nethttp.Peer,
	retryablehttp.Peer,
	agentmessaging.Peer,
	anthropic.Peer,
	github.Peer,
	oapicodegen.Peer,
	openai.Peer,
	resend.Peer,
	slack.Peer,
	stripe.Peer,
	vault.Peer,
}
