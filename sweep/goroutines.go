package sweep

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

const labelKey = "sweep"

// label marks the goroutine, and those that it starts, by the play: a panic in
// one of them shows it, from Go 1.26 on.
func label(play string) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(labelKey, play)))
}

// traceLabels makes the trace of a panic name the play, from Go 1.26 on.
var traceLabels = sync.OnceFunc(func() {
	settings := os.Getenv("GODEBUG")
	if settings != "" {
		settings += ","
	}
	_ = os.Setenv("GODEBUG", settings+"tracebacklabels=1")
})

// routine is the caller's goroutine: "goroutine 12".
func routine() string {
	var head [32]byte
	words := strings.Fields(string(head[:runtime.Stack(head[:], false)]))
	return strings.Join(words[:2], " ")
}

// inBubble reports a caller in a testing/synctest bubble.
func inBubble() (inside bool) {
	defer func() { inside = recover() == nil }()
	synctest.Wait() // panics outside
	return true
}

// labelled are the stacks of a play's goroutines, without addresses.
func labelled(play string) (stacks []string) {
	var profile strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(stack, fmt.Sprintf("# labels: {%q:%q", labelKey, play)) {
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

// leftovers are the goroutines of a play that do not end by themselves: each by
// its stack, innermost function first. One that is about to end may need longer
// on a slow machine: the fake's Sleep returns when nothing runs any more.
func (p *play) leftovers() []string {
	for wait := time.Duration(0); wait < 20*time.Millisecond; wait += time.Millisecond {
		if runtime.Gosched(); len(labelled(p.label)) == 0 {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	_ = p.fake.Sleep(context.Background(), time.Nanosecond)
	return labelled(p.label)
}

// deadlocked turns the panic of a bubble whose goroutines wait for ever into what
// they have done: they are left over, or the scenario never ends.
func (p *play) deadlocked() {
	if v := recover(); v == nil {
		return
	} else if !strings.HasPrefix(fmt.Sprint(v), "deadlock:") {
		panic(v)
	}
	stacks := labelled(p.label)
	if p.finished {
		p.left = stacks
		return
	}
	p.stalled = "waits for what never comes:\n" + strings.Join(stacks, "\n")
}

// wait waits until a play is done, or for the watchdog, and then says why it does
// not end.
func (p *play) wait(done <-chan struct{}) {
	alarm := p.sweep.alarm
	if alarm == nil {
		timer := time.NewTimer(p.sweep.watchdog)
		defer timer.Stop()
		alarm = func(time.Duration) <-chan time.Time { return timer.C }
	}
	select {
	case <-done:
		return
	case <-alarm(p.sweep.watchdog):
	}
	stacks := strings.Join(labelled(p.label), "\n")
	advice := "It may wait for real time: let it wait with Env.Fake.Sleep, or sweep with InBubble. Or it waits for what never comes."
	switch {
	case p.sweep.bubble && strings.Contains(stacks, "Mutex)"):
		advice = "In a bubble, time stands still while a goroutine waits for a mutex: do not hold it across a call, or sweep without InBubble."
	case p.sweep.bubble && p.late.Load():
		advice = "Its virtual time runs on and on: a loop over a timer or a ticker does not end with Env.Context."
	case p.sweep.bubble:
		advice = "In a bubble, time stands still while a goroutine waits for something outside: a socket, or a channel or a pool of goroutines " +
			"that was made before the run, such as a package's variable. Make it in the scenario, or sweep without InBubble."
	}
	p.stalled = fmt.Sprintf("stalls: it has not ended in %s of real time. %s\n%s", p.sweep.watchdog, advice, stacks)
}
