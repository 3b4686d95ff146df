package sweep

import (
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing/synctest"
)

// labelKey marks the goroutines of an execution. The trace of a panic shows it where
// GODEBUG has tracebacklabels=1, from Go 1.26 on.
const labelKey = "sweep"

// labelled are the stacks of an execution's goroutines, without addresses.
func labelled(execution string) (stacks []string) {
	var profile strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(stack, fmt.Sprintf("# labels: {%q:%q", labelKey, execution)) {
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
