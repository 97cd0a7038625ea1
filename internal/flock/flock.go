// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package flock reads the kernel's list of file locks.
package flock

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Key returns the name of a file in the list of locks, given its device number,
// major:minor in hexadecimal, and its inode.
func Key(device string, inode uint64) string { return fmt.Sprintf("%s:%d", device, inode) }

// Holders returns the processes that hold flock(2) locks, by [Key]. The path is that
// of the list: /proc/locks, or a test's file. The list hides processes of other PID
// namespaces, and the result is empty if it can't be read. A line is
//
//	1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF
func Holders(path string) map[string]int {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	pids := make(map[string]int)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		field := strings.Fields(lines.Text())
		if len(field) < 6 || field[1] != "FLOCK" {
			continue // a process that waits for a lock has -> here
		}
		if pid, err := strconv.Atoi(field[4]); err == nil && pid > 0 {
			pids[field[5]] = pid
		}
	}
	return pids
}
