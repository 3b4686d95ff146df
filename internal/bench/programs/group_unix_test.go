//go:build unix

package programs

import (
	"os"
	"os/exec"
	"syscall"
)

// lead makes a program the leader of a process group, so that what it starts
// ends with it.
func lead(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
