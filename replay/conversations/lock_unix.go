//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package conversations

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

const canSyncFolders = true

// lock waits for the lock of that file and takes it. The system lets go of it
// when the process dies; the file stays, since taking it away would let two
// processes lock two files of one name.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
