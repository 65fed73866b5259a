package cache

import (
	"errors"
	"os"
	"syscall"
)

// setLock is F_OFD_SETLK: a lock of an open file, which others that the same process
// has open do not share.
const setLock = 37

// lock tries to lock a byte of a file.
func lock(f *os.File, at int64) (bool, error) {
	err := syscall.FcntlFlock(f.Fd(), setLock, &syscall.Flock_t{Type: syscall.F_WRLCK, Start: at, Len: 1})
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return false, nil
	}
	return err == nil, err
}

func unlock(f *os.File, at int64) {
	_ = syscall.FcntlFlock(f.Fd(), setLock, &syscall.Flock_t{Type: syscall.F_UNLCK, Start: at, Len: 1}) // it ends with the process at the latest
}
