// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"
)

// entry is a process in the listing of /proc. The inode changes if the PID is reused, and
// may change when the kernel reclaims memory.
type entry struct {
	pid   int
	inode uint64
}

// Offsets of fields in a record of getdents(2).
const (
	direntLength = 16 // after the inode and an offset
	direntName   = 19 // after the length and a type
)

// list appends the processes in a proc file system to found. It reads into buf.
func list(proc string, buf []byte, found []entry) ([]entry, error) {
	f, err := os.Open(proc)
	if err != nil {
		return found, err
	}
	defer f.Close()
	for {
		n, err := syscall.ReadDirent(int(f.Fd()), buf)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return found, &os.PathError{Op: "list", Path: proc, Err: err}
		case n <= 0:
			return found, nil
		}
		for b := buf[:n]; len(b) > direntName; {
			size := int(binary.NativeEndian.Uint16(b[direntLength:]))
			if size <= direntName || size > len(b) {
				break
			}
			if pid := parsePID(b[direntName:size]); pid > 0 {
				found = append(found, entry{pid, binary.NativeEndian.Uint64(b)})
			}
			b = b[size:]
		}
	}
}

// parsePID parses a PID that ends with a zero byte. It returns 0 if the name isn't a PID.
func parsePID(name []byte) int {
	n := 0
	for i, c := range name {
		switch {
		case c == 0 && i > 0:
			return n
		case c < '0' || c > '9' || n > 1<<30:
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return 0
}
