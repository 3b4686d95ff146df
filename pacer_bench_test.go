package agentmessaging_test

import (
	"context"
	"testing"
	"time"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// BenchmarkPacer is one attempt that waits for nothing.
func BenchmarkPacer(b *testing.B) {
	pacer := newPacer(b, []agentmessaging.Limit{{Max: 1 << 30, Window: time.Second}})
	b.ReportAllocs()
	for b.Loop() {
		permit, err := pacer.Acquire(context.Background(), sendAttempt)
		if err != nil {
			b.Fatal(err)
		}
		permit.Done(agentmessaging.AttemptOutcome{StatusCode: 200, Sent: true})
	}
}
