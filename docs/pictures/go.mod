module github.com/agent-messaging-service/agentmessaging-go/docs/pictures

go 1.25.0
