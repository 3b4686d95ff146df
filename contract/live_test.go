package contract_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
)

var live = flag.Bool("contract.live", false,
	"run the contract against AGENT_MESSAGING_BASE_URL with AGENT_MESSAGING_API_KEY; overwrites the key's BYOK configuration")

// liveBudget bounds what one live run spends of the key's allowance: within one
// minute of the preview limits, a fifth of the hour's BYOK sets, a third of
// its warm-ups, and no waiting.
var liveBudget = contract.Spend{Requests: 40, Creations: 5, BYOKSets: 1, WarmUps: 1}

// TestLive runs the cases that need nothing but a key, one after the other.
//
//	go test -v ./contract -run TestLive -contract.live
func TestLive(t *testing.T) {
	if !*live {
		t.Skip("needs -contract.live, AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY")
	}
	target := contract.Target{
		BaseURL: os.Getenv("AGENT_MESSAGING_BASE_URL"),
		Key:     os.Getenv("AGENT_MESSAGING_API_KEY"),
		Budget:  liveBudget,
	}
	require.NotEmpty(t, target.BaseURL, "AGENT_MESSAGING_BASE_URL")
	require.NotEmpty(t, target.Key, "AGENT_MESSAGING_API_KEY")
	contract.Run(t, target)
}
