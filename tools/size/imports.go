//go:build imports

package main

import _ "github.com/agent-messaging-service/agentmessaging-go"
