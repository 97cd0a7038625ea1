//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Unattended says whether no process has the ring at path open for writing, so
// that neither an agent nor a consumer is left. A mapping counts as open.
//
// It asks the kernel for a read lease, which is granted on just this
// condition, and gives it back at once. That takes the owner of the file or
// root, and a local file system; otherwise the answer is an error, and nothing
// is known.
func Unattended(path string, opts ...Option) (bool, error) {
	f, _, err := openChecked(path, Observe, newOptions(opts))
	if err != nil {
		return false, fmt.Errorf("ring %s: %w", path, err)
	}
	defer f.Close()
	switch _, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); {
	case errors.Is(err, unix.EAGAIN):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("ring %s: take a lease: %w", path, err)
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	if err != nil {
		return false, fmt.Errorf("ring %s: give back a lease: %w", path, err)
	}
	return true, nil
}
