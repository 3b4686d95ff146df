//go:build unix

package bench_test

import (
	"bufio"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkStart measures the fake's program from its start to its first answer.
func BenchmarkStart(b *testing.B) {
	program := filepath.Join(b.TempDir(), "program")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../../cmd/agentmessaging-fake").CombinedOutput()
	require.NoError(b, err, "%s", out)
	for b.Loop() {
		run := exec.Command(program, "--addr=127.0.0.1:0", "--log=off")
		awaitAnswer(b, run)
		require.NoError(b, run.Process.Kill())
		_ = run.Wait() // it was killed
	}
}

// awaitAnswer starts a program, and waits until it has answered once.
func awaitAnswer(b *testing.B, program *exec.Cmd) {
	output, err := program.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, program.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(b, err)
	resp, err := http.Get(strings.TrimPrefix(strings.TrimSpace(line), "export AGENT_MESSAGING_BASE_URL=") + "/healthz")
	require.NoError(b, err)
	require.NoError(b, resp.Body.Close())
}
