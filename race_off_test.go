//go:build !race

package agentmessaging_test

const raceEnabled = false
