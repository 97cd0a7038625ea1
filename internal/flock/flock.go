// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package flock reads the kernel's list of file locks.
package flock

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

// Key returns the name of a file in the list of locks, given its [Device] and its inode.
func Key(device string, inode uint64) string { return fmt.Sprintf("%s:%d", device, inode) }

// maxAge is how long a [Cache] uses a list. Reading the list takes milliseconds if there are
// thousands of locks.
const maxAge = 10 * time.Second

// maxList limits how many bytes of a list are read, which is about 20,000 locks. Any process
// can take any number of locks, and the kernel takes seconds to list hundreds of thousands.
const maxList = 1 << 20

// Cache is the list of locks, which is read again after 10 seconds. It is safe for
// concurrent use.
type Cache struct {
	path string

	mu      sync.Mutex
	read    time.Time
	holders map[string]int
}

// NewCache returns a Cache of the list at a path; see [Holders].
func NewCache(path string) *Cache { return &Cache{path: path} }

// Holder returns the process that holds the lock of a file, or 0 if it is unknown.
func (c *Cache) Holder(key string, now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() || now.Sub(c.read) >= maxAge {
		c.holders, _ = Holders(c.path)
		c.read = now
	}
	return c.holders[key]
}

// Holders returns the processes that hold flock(2) locks, by [Key]. The path is that
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
