//go:build unix

package redisquota_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// freeze lets the process hang, with its connections, until it thaws.
func (s *server) freeze(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.process.Process.Signal(syscall.SIGSTOP))
}

func (s *server) thaw(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.process.Process.Signal(syscall.SIGCONT))
}
