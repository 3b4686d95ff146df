package contract_test

import (
	"fmt"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
)

// What a case checks and what it costs, without running it.
func ExampleCases() {
	for _, c := range contract.Cases() {
		if c.ID == "4.4/set-read-clear" {
			fmt.Println(c)
			fmt.Println("spends", c.Spends)
		}
	}
	// Output:
	// interface 4.4: "Sets BYOK for the calling API key."
	// spends 4 requests, 1 BYOK set
}
