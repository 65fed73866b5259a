package conversations

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockRetry is how often a lock that somebody has is tried again.
const lockRetry = 2 * time.Millisecond

// lock waits for a conversation's lock and takes it, unless ctx ends first. The
// system lets go of it when the process dies; the file stays, since taking it away
// would let two processes lock two files of one name.
func (s *Folder) lock(ctx context.Context, id string) (unlock func(), err error) {
	l := flock.New(filepath.Join(s.dir, id+".lock"))
	if _, err := l.TryLockContext(ctx, lockRetry); err != nil {
		_ = l.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("locking %s: %w", l.Path(), err)
	}
	return func() { _ = l.Close() }, nil
}
