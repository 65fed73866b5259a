package cache

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"time"

	"evalrun/pipeline"
)

// flights let one process at a time ask for a key. Each holds a lock on a byte of a
// file, at a place that the key chooses: nothing is in the file, and what a process
// holds ends with it. Two keys in one place, of 2^62, only wait for each other.
type flights struct{ f *os.File }

// lookEvery is how often a process looks whether another still asks.
const lookEvery = 50 * time.Millisecond

func openFlights(path string) (*flights, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	return &flights{f}, err
}

func (fl *flights) close() error {
	if fl == nil {
		return nil
	}
	return fl.f.Close()
}

// place is where the lock of a key is.
func (k key) place() int64 { return int64(binary.LittleEndian.Uint64(k[:]) >> 2) }

// takeOff waits until no other process asks for a key, and makes this one the one
// who does until it lands.
func (fl *flights) takeOff(ctx context.Context, k key) (land func(), err error) {
	waited := func() {}
	defer func() { waited() }()
	for first := true; ; first = false {
		free, err := lock(fl.f, k.place())
		if err != nil {
			return nil, &pipeline.Fatal{Err: errors.Join(errors.New("the reply cache: waiting for another process"), err)}
		}
		if free {
			return func() { unlock(fl.f, k.place()) }, nil
		}
		if first {
			waited = pipeline.Waiting(ctx)
		}
		again, cancel := context.WithTimeout(ctx, lookEvery)
		<-again.Done()
		cancel()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}
