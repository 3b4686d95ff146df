package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain makes the test's program the one that the fleet consists of.
func TestMain(m *testing.M) {
	if os.Getenv(envWorker) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	t.Setenv(envRedis, "") // the environment's Redis may be someone's
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("this test runs a redis-server, and there is none")
	}
	var stdout bytes.Buffer
	require.NoError(t, run(t.Context(), &stdout))
	assert.Regexp(t, `^4 processes for 4s, 600 requests a minute for all of them
process 1, 32 callers: +\d+ accepted, 0 refused with 429, \d+ % of all
(process [2-4],  4 callers: +\d+ accepted, 0 refused with 429, \d+ % of all
){3}together: \d+ accepted, 0 refused with 429
$`, stdout.String())
}

func TestRunWithoutRedis(t *testing.T) {
	t.Setenv(envRedis, "")
	t.Setenv("PATH", t.TempDir())
	var stdout bytes.Buffer
	require.NoError(t, run(t.Context(), &stdout))
	assert.Equal(t, "This example needs Redis: set REDIS_URL, or install redis-server.\n", stdout.String())
}
