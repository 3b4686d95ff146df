module github.com/agent-messaging-service/agentmessaging-go/tools/docs

go 1.25.0

replace github.com/agent-messaging-service/agentmessaging-go => ../../

require (
	github.com/agent-messaging-service/agentmessaging-go v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
