//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lock makes f's ring ours. Agents take no lock, so that this keeps out other
// consumers of this project only; it ends when f is closed or the process
// dies.
func lock(f *os.File, st *unix.Stat_t) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return &LockedError{PID: lockHolder("/proc/locks", st)}
	case err != nil:
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}

// lockHolder is the process that holds a file's lock, 0 if the list of locks
// doesn't say: it hides processes of other PID namespaces. A line is
//
//	1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF
//
// with the device in hexadecimal and the inode in decimal.
func lockHolder(locks string, st *unix.Stat_t) int {
	f, err := os.Open(locks)
	if err != nil {
		return 0
	}
	defer f.Close()
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		field := strings.Fields(lines.Text())
		if len(field) >= 6 && field[1] == "FLOCK" && field[5] == file {
			pid, err := strconv.Atoi(field[4])
			if err == nil && pid > 0 {
				return pid
			}
		}
	}
	return 0
}
