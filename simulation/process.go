package simulation

import (
	"context"
	"sync"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// process is one of those that share the key. Its limiter is its own.
type process struct {
	limiter agentmessaging.Limiter
	ctx     context.Context // ends when it is killed
	end     context.CancelFunc

	mu     sync.Mutex
	frozen chan struct{} // not nil: nothing goes in or out until it is closed
	killed bool
}

// kill ends the process without a farewell: what it held is lost.
func (p *process) kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	p.end()
}

// freeze stops the process's network, as a long pause would.
func (p *process) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = make(chan struct{})
}

func (p *process) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.frozen)
	p.frozen = nil
}

// pass waits while the process is frozen, and reports whether it lives.
func (p *process) pass() bool {
	p.mu.Lock()
	frozen, killed := p.frozen, p.killed
	p.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
	return !killed
}

// link is a process's way to the coordinator.
type link struct {
	process     *process
	coordinator *coordinator
}

func (l link) Do(ctx context.Context, step quota.Step) (quota.Answer, error) {
	if !l.process.pass() {
		return quota.Answer{}, errDown
	}
	return l.coordinator.Do(ctx, step)
}
