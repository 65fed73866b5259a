//go:build !unix

package proc

import "os/exec"

// Elsewhere a command is stopped alone: what it started is not known.
func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) error {
	if cmd.Process == nil {
		return nil
	}
	_ = cmd.Process.Kill()
	return nil
}
