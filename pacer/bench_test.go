package pacer_test

import (
	"context"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// BenchmarkAcquire is a call that need not wait, with all limits of the preview
// in force.
func BenchmarkAcquire(b *testing.B) {
	limits := pacer.PreviewLimits()
	for i := range limits {
		limits[i].Max = 1 << 30
	}
	p := newPacer(b, limits)
	answered := agentmessaging.AttemptOutcome{StatusCode: 200, Sent: true}
	b.ReportAllocs()
	for b.Loop() {
		permit, _ := p.Acquire(context.Background(), message)
		permit.Done(answered)
	}
}

// BenchmarkRefusal is a call that is refused at once while 50,000 wait.
func BenchmarkRefusal(b *testing.B) {
	p := newPacer(b, perMinute(60))
	use(b, p, message)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	arrived := make(chan bool)
	for range 50_000 {
		go func() {
			arrived <- true
			_, _ = p.Acquire(ctx, patient())
		}()
		<-arrived
	}
	hopeless, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	b.ResetTimer()
	for b.Loop() {
		_, _ = p.Acquire(hopeless, message)
	}
}
