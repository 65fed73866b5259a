package journal

import (
	"os"
	"syscall"
)

// syncData puts a file's bytes on disk, and of what is known of the file no more
// than reading them back takes.
func syncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
