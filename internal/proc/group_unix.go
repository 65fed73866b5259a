//go:build unix

package proc

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the command a process group of its own, so that it can be
// stopped with all it started.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the command and what it started. That it is gone already is no
// error.
func killGroup(cmd *exec.Cmd) error {
	if cmd.Process == nil {
		return nil
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return nil
}
