//go:build race

package agentmessaging_test

const raceEnabled = true
