//go:build unix

package app

import (
	"os/signal"
	"syscall"
)

// boundFiles has a file that may not grow be an error of the write, as a full disk
// is, and not end the process.
func boundFiles() { signal.Ignore(syscall.SIGXFSZ) }
