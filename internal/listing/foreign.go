package listing

import (
	"errors"
	"io/fs"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// startingFor is how long an empty file may be an agent's that is about to make
// it a ring. That takes a real one far less than a second.
const startingFor = time.Minute

// foreign says whether a file that isn't a readable ring has nothing to do
// with telemetry. In a busy /tmp most have not.
func foreign(err error, info fs.FileInfo) bool {
	switch {
	case errors.Is(err, ringbuf.ErrNotRing), errors.Is(err, ringbuf.ErrNotRegular):
		return true
	case errors.Is(err, ringbuf.ErrNotReady) && info.Size() == 0:
		return time.Since(info.ModTime()) > startingFor
	case errors.Is(err, ringbuf.ErrNotReady), errors.Is(err, fs.ErrPermission):
		return !ringSize(info.Size()) // zeros prove nothing, and neither does what can't be read
	}
	return false
}

// ringSize says whether a header of 40 bytes and a whole number of slots of
// some layout make up a file of a given size. A number of slots that isn't a
// power of two is a mistake that agents fail over, not a file of others.
func ringSize(size int64) bool {
	const header = 40
	for _, l := range ringbuf.Layouts() {
		if slots := size - header; slots > 0 && slots%int64(l.EventSize()) == 0 {
			return true
		}
	}
	return false
}
