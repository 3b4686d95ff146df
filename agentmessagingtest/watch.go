package agentmessagingtest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

// watch waits until a run is done, or for the watchdog, and then says why the
// run stands still.
func (r *run) watch(done <-chan struct{}, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	}
	r.stalled = fmt.Sprintf("stalls: it has not ended in %s of real time. %s", patience, r.why())
	return false
}

// why tells, from the stacks of all goroutines, what a stalled run waits for.
func (r *run) why() string {
	all := make([]byte, 1<<20)
	stacks := string(all[:runtime.Stack(all, true)])
	var waiting []string
	advice := "It may wait for something that only real time, or nothing, brings."
	for _, stack := range strings.Split(stacks, "\n\n") {
		head, rest, _ := strings.Cut(stack, "\n")
		if !r.owns(stack) {
			continue
		}
		switch {
		case r.sweep.bubble && strings.Contains(head, "sync."):
			advice = "In a bubble, time stands still while a goroutine waits for a mutex: do not hold it across a call, or sweep without InBubble."
		case r.sweep.bubble && strings.Contains(head, "IO wait"):
			advice = "In a bubble, time stands still while a goroutine waits for a socket: sweep without InBubble."
		case !r.sweep.bubble && (strings.Contains(head, "sleep") || strings.Contains(head, "select")):
			advice = "The application waits in real time: let it wait with Env.Fake.Sleep, or sweep with InBubble."
		}
		waiting = append(waiting, head+"\n"+rest)
	}
	return advice + "\n" + strings.Join(waiting, "\n\n")
}

// owns reports whether a stack is of a goroutine that this run has started.
func (r *run) owns(stack string) bool {
	return strings.Contains(stack, fmt.Sprintf("%q: %q", labelKey, r.name())) ||
		strings.Contains(stack, "created by github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest.(*run).perform")
}

// deadlocked turns the panic of a bubble whose goroutines outlive it into
// something left behind.
func (r *run) deadlocked() {
	if v := recover(); v != nil {
		r.first.left = append(r.first.left, fmt.Sprint(v))
	}
}

// traceLabels makes the trace of a panic name the plan, from Go 1.26 on.
var traceLabels = sync.OnceFunc(func() {
	settings := os.Getenv("GODEBUG")
	if settings != "" {
		settings += ","
	}
	_ = os.Setenv("GODEBUG", settings+"tracebacklabels=1")
})
