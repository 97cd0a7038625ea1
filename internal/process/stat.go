// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"strconv"
)

// proc(5) numbers the fields of /proc/PID/stat from 1. The first two are the PID and, in
// parentheses, a name that may contain any characters.
const (
	fieldParent = 4
	fieldStart  = 22
)

// parseStat returns the PID of the parent and the start time, in clock ticks since boot, from the contents
// of /proc/PID/stat.
func parseStat(b []byte) (parent int, start uint64, ok bool) {
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) <= fieldStart-3 {
		return 0, 0, false
	}
	parent, err1 := strconv.Atoi(string(fields[fieldParent-3]))
	start, err2 := strconv.ParseUint(string(fields[fieldStart-3]), 10, 64)
	return parent, start, err1 == nil && err2 == nil
}

// Numbers of capabilities; see capabilities(7).
const (
	capDACOverride = 1
	capSysPtrace   = 19
)

// privileged reports whether a process has the capabilities to examine all others, from
// the contents of its /proc/PID/status.
func privileged(status []byte) bool {
	list := statusField(status, "CapEff:")
	if len(list) == 0 {
		return false
	}
	const needed = 1<<capDACOverride | 1<<capSysPtrace
	has, err := strconv.ParseUint(string(list[0]), 16, 64)
	return err == nil && has&needed == needed
}

// statusField returns the values of a field of /proc/PID/status.
func statusField(status []byte, name string) [][]byte {
	for line := range bytes.Lines(status) {
		if list, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return bytes.Fields(list)
		}
	}
	return nil
}
