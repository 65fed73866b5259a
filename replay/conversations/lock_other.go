//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package conversations

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

const canSyncFolders = false

// lock makes the lock's file, which must not be there, and takes it away after.
// A process that dies holding it leaves the file behind.
func lock(path string) (unlock func(), err error) {
	for range 100_000 {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			f.Close()
			return func() { os.Remove(path) }, nil
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		runtime.Gosched()
	}
	return nil, fmt.Errorf("%s is held by another process; if that process died, remove the file", path)
}
