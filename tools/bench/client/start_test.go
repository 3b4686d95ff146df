package client

import (
	"bufio"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// BenchmarkStart starts the fake's program, to its first answer, and ends it.
func BenchmarkStart(b *testing.B) {
	program := filepath.Join(b.TempDir(), "fake.exe")
	out, err := exec.Command("go", "build", "-C", "../../../cmd/agentmessaging-fake", "-buildvcs=false", "-o", program, ".").CombinedOutput()
	require.NoError(b, err, "%s", out)
	for b.Loop() {
		fake := exec.Command(program, "--addr=127.0.0.1:0")
		said, err := fake.StdoutPipe()
		require.NoError(b, err)
		require.NoError(b, fake.Start())
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if url := address.FindString(lines.Text()); url != "" {
				resp, err := http.Get(url + "/healthz")
				require.NoError(b, err)
				require.NoError(b, resp.Body.Close())
				break
			}
		}
		require.NoError(b, fake.Process.Kill())
		_ = fake.Wait() // it was killed
	}
}
