package agentmessagingtest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"
)

const labelKey = "agentmessagingtest"

// label marks the goroutine, and those that it starts, by the plan: a panic in
// one of them shows it, from Go 1.26 on.
func label(plan string) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(labelKey, plan)))
}

// traceLabels makes the trace of a panic name the plan, from Go 1.26 on.
var traceLabels = sync.OnceFunc(func() {
	settings := os.Getenv("GODEBUG")
	if settings != "" {
		settings += ","
	}
	_ = os.Setenv("GODEBUG", settings+"tracebacklabels=1")
})

// labelled are the stacks of a plan's goroutines, without addresses.
func labelled(plan string) (stacks []string) {
	var profile strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(stack, fmt.Sprintf("# labels: {%q:%q", labelKey, plan)) {
			continue
		}
		var frames strings.Builder
		for line := range strings.Lines(stack) {
			if fields := strings.Fields(line); strings.HasPrefix(line, "#\t") && len(fields) > 3 {
				fmt.Fprintf(&frames, "    %s %s\n", fields[2], fields[3])
			}
		}
		stacks = append(stacks, frames.String())
	}
	return stacks
}

// leftovers are the goroutines of a run that do not end by themselves: each by
// its stack, innermost function first. One that is about to end may need longer
// on a slow machine: the fake's Sleep returns when nothing runs any more.
func (r *run) leftovers(before int) []string {
	for wait := time.Duration(0); wait < 20*time.Millisecond; wait += time.Millisecond {
		if runtime.Gosched(); runtime.NumGoroutine() <= before {
			return nil
		}
		if wait > 5*time.Millisecond && len(labelled(r.name())) == 0 {
			return nil // of other tests
		}
		time.Sleep(time.Millisecond)
	}
	_ = r.fake.Sleep(context.Background(), time.Nanosecond)
	return labelled(r.name())
}

// watch waits until a run is done, or for the watchdog, and then says why the
// run stands still.
func (r *run) watch(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-r.sweep.alarm(r.sweep.watchdog):
	}
	stacks := strings.Join(labelled(r.name()), "\n")
	advice := "It may wait for real time: let it wait with Env.Fake.Sleep, or sweep with InBubble. Or for what never comes."
	switch {
	case r.sweep.bubble && strings.Contains(stacks, "Mutex)"):
		advice = "In a bubble, time stands still while a goroutine waits for a mutex: do not hold it across a call, or sweep without InBubble."
	case r.sweep.bubble:
		advice = "In a bubble, time stands still while a goroutine waits for a socket: sweep without InBubble. Or it waits for what never comes."
	}
	r.stalled = fmt.Sprintf("stalls: it has not ended in %s of real time. %s\n%s", r.sweep.watchdog, advice, stacks)
	return false
}

// deadlocked turns the panic of a bubble whose goroutines outlive it into
// something left behind.
func (r *run) deadlocked() {
	if v := recover(); v != nil {
		r.plays[0].left = append(r.plays[0].left, fmt.Sprint(v))
	}
}
