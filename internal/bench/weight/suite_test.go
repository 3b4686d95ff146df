package weight

import (
	"os/exec"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/agentmessaging"
)

const root = "../../.."

// BenchmarkSuite runs the SDK's own tests. What they compile is in the build
// cache by then; their programs are linked each time, as for everyone.
func BenchmarkSuite(b *testing.B) {
	b.Run("subject="+agentmessaging.Peer.Subject(), func(b *testing.B) {
		if testing.Short() {
			b.Skip("not measured with -short: how long the SDK's own tests take")
		}
		runTests(b, "-run=^$")
		start := time.Now()
		runTests(b)
		took := time.Since(start)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(took.Seconds(), "s")
	})
}

func runTests(b *testing.B, args ...string) {
	b.Helper()
	cmd := exec.Command("go", append([]string{"test", "-count=1"}, append(args, "./...")...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
}
