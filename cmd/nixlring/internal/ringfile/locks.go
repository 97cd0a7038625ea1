// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringfile

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/files"
)

// Device returns a device number of stat(2) as /proc shows it: major:minor in hexadecimal.
func Device(dev uint64) string {
	major := dev>>8&0xfff | dev>>32&^uint64(0xfff)
	minor := dev&0xff | dev>>12&0xffffff00
	return fmt.Sprintf("%02x:%02x", major, minor)
}

// LockKey returns the name of a file in the list of locks.
func LockKey(id files.ID) string { return fmt.Sprintf("%s:%d", Device(id.Dev), id.Ino) }

// maxList limits how many bytes of a list are read, which is about 20,000 locks. Any process
// can take any number of locks, and the kernel takes seconds to list hundreds of thousands.
const maxList = 1 << 20

// LockHolders returns the processes that hold flock(2) locks, by [LockKey]. The path is that
// of the list: /proc/locks, or a test's file. The list hides processes of other PID
// namespaces, and the result is empty if it can't be read. LockHolders reads its first 1 MiB, and
// reports whether that is the whole list: otherwise, a file without a holder may have one. A
// line is
//
//	1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF
func LockHolders(path string) (pids map[string]int, all bool) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	pids = make(map[string]int)
	list := &io.LimitedReader{R: f, N: maxList}
	lines := bufio.NewScanner(list)
	for lines.Scan() {
		field := strings.Fields(lines.Text())
		if len(field) < 8 || field[1] != "FLOCK" {
			continue // a process that waits for a lock has -> here; the last line may be cut off
		}
		if pid, err := strconv.Atoi(field[4]); err == nil && pid > 0 {
			pids[field[5]] = pid
		}
	}
	return pids, lines.Err() == nil && list.N > 0
}
