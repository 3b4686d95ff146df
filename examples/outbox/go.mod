module github.com/agent-messaging-service/agentmessaging-go/examples/outbox

go 1.25.0

require (
	github.com/agent-messaging-service/agentmessaging-go v0.2.0
	github.com/ncruces/go-sqlite3 v0.29.1
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	github.com/ncruces/julianday v1.0.0 // indirect
	github.com/tetratelabs/wazero v1.9.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.42.0 // indirect
)

replace github.com/agent-messaging-service/agentmessaging-go => ../../
