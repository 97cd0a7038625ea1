// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Device returns a device number of stat(2) as /proc shows it: major:minor in hexadecimal.
func Device(dev uint64) string {
	major := dev>>8&0xfff | dev>>32&^uint64(0xfff)
	minor := dev&0xff | dev>>12&0xffffff00
	return fmt.Sprintf("%02x:%02x", major, minor)
}

// Key returns the name of the file in the list of locks.
func (id ID) Key() string { return fmt.Sprintf("%s:%d", Device(id.Dev), id.Ino) }

// maxList limits how many bytes of a list are read, which is about 20,000 locks. Any process
// can take any number of locks, and the kernel takes seconds to list hundreds of thousands.
const maxList = 1 << 20

// burst is the time for which the list of locks may be read at once.
const burst = 100 * time.Millisecond

// Locks is the kernel's list of locks. Reading it takes milliseconds if there are thousands of
// locks, so it is read during at most 1% of the time, averaged over 100 bursts. Between two
// readings, a new file can have the number of a removed one, and then its holder is wrong. It is
// safe for concurrent use.
type Locks struct {
	Path string // of the list; see [Holders]

	mu      sync.Mutex
	paid    time.Time // when 1% of the time since then is what all readings took
	holders map[string]int
}

// Holder returns the process that holds the lock of a file, or 0 if it is unknown.
func (l *Locks) Holder(id ID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if began := time.Now(); !began.Before(l.paid) {
		l.holders, _ = Holders(l.Path)
		if start := began.Add(-100 * burst); l.paid.Before(start) {
			l.paid = start
		}
		l.paid = l.paid.Add(100 * time.Since(began))
	}
	return l.holders[id.Key()]
}

// Holders returns the processes that hold flock(2) locks, by [ID.Key]. The path is that
// of the list: /proc/locks, or a test's file. The list hides processes of other PID
// namespaces, and the result is empty if it can't be read. Holders reads its first 1 MiB, and
// reports whether that is the whole list: otherwise, a file without a holder may have one. A
// line is
//
//	1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF
func Holders(path string) (pids map[string]int, all bool) {
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
