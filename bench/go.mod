module github.com/agent-messaging-service/agentmessaging-go/bench

go 1.26.0

replace github.com/agent-messaging-service/agentmessaging-go => ../

require (
	github.com/agent-messaging-service/agentmessaging-go v0.0.0
	github.com/hashicorp/go-retryablehttp v0.7.8
)

require github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
